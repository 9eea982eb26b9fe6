"""`gatekeeper serve`: a gate between callers and an OpenAI-compatible API.

application   routes, the gateway's key, what is under way
route         calls for some models, and their gate
routes        those of a gateway that runs
calls         a request for outputs: what it asks of the gateway, what goes upstream
logprobs      what is requested on the caller's behalf, and removed from the answer
json_edit     edits of JSON that keep every other byte
answer_edit   the same, of large answers
gated         answers to such requests
streamed      those that come as a stream
codings       compressed bodies
events        frames of a stream
stored        responses that are read later
outputs       decisions, and verification in the background
results       headers, comments and JSON of a result
tasks         what outputs are verified against
trace_context the caller's span, for telemetry
upstream      connections to the API
metrics       figures for Prometheus
refusal       errors of the gateway itself
callers       connections of callers
bodies        their requests as they arrive
server        serving, and ending without loss
termination   SIGTERM, also before and after serving
workers       several processes on the same sockets
settings      of a gateway
"""
