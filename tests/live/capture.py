"""Record the answers of a real vLLM server and engine in tests/adapters/captures/.

    PYTHONPATH=. .venv-vllm/bin/python tests/live/capture.py    # after `make test-vllm`

One file per scenario, besides `errors.json` and `modes.json`. An exchange over HTTP is kept as the
real client sent it and as it came over the wire; an offline output with all its fields that bear on
tokens, -Infinity as Python's json writes it. tests/adapters/test_captures.py replays them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import httpx2
from offline import async_chunks, llm_outputs, sampling_params
from openai import APIStatusError, OpenAI
from scenarios import ENVIRONMENT, SCENARIOS, Scenario
from server import serving
from vllm.logprobs import FlatLogprobs
from vllm.outputs import RequestOutput
from vllm.sampling_params import RequestOutputKind

CAPTURES = Path(__file__).parents[1] / "captures"
KS = (1, 2, 3, 5, 20)
STREAM = {"stream": True, "stream_options": {"include_usage": True}}
Json = dict[str, Any]
ADD = {
    "name": "add",
    "parameters": {
        "type": "object",
        "properties": {"a": {"enum": [7, 8]}, "b": {"enum": [7, 8]}},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
}

# An output that a reasoning parser splits. The grammar applies to the reasoning, too.
REASONED = Scenario(
    name="reasoned",
    prompt="Compute 7 + 8.",
    max_tokens=80,
    regex=r"Here is my thought process:7\+8=[0-9]{2} Here is my response:\\boxed\{[0-9]{2}\}",
)
# In bfloat16 the two best tokens can have exactly the same probability, as in this one.
TIED = Scenario(
    name="tied",
    prompt="Tell me a story about a fox.",
    max_tokens=20,
    temperature=2.0,
    seed=6,
)
IN_REASONING = ("--structured-outputs-config", '{"enable_in_reasoning": true}')


class Recorder(httpx2.HTTPTransport):
    """Keeps the last exchange, complete, before the client sees it."""

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        response = super().handle_request(request)
        body = response.read()
        self.last = {
            "path": request.url.path,
            "request": json.loads(request.content),
            "status": response.status_code,
            "content_type": response.headers["content-type"],
            "body": body.decode(),
        }
        return httpx2.Response(response.status_code, headers=response.headers, content=body)


class Http:
    """The routes of a server, each through the real client."""

    def __init__(self, base_url: str) -> None:
        self.recorder = Recorder()
        self.client = OpenAI(
            base_url=base_url,
            api_key="none",
            max_retries=0,
            http_client=httpx2.Client(transport=self.recorder),
        )

    def record(self, name: str, create: Callable[..., Any], arguments: Json) -> Json:
        try:
            answer = create(**arguments)
            if arguments.get("stream"):
                for _ in answer:
                    pass
        except APIStatusError:
            pass  # only the body is needed
        return {"name": name, **self.recorder.last}

    def scenario(self, s: Scenario, ks: Sequence[int], *, stream_k: int) -> list[Json]:
        """Every route at every k, plain; streaming at `stream_k`."""
        chat = self.client.chat.completions.create
        completions = self.client.completions.create
        responses = self.client.responses.create
        taken = []
        for k in ks:
            taken.append(self.record(f"chat-k{k}", chat, s.chat(k)))
            taken.append(self.record(f"completions-k{k}", completions, s.completions(k)))
            taken.append(
                self.record(
                    f"completions-strings-k{k}", completions, s.completions(k, token_ids=False)
                )
            )
            if s.n == 1:
                taken.append(self.record(f"responses-k{k}", responses, s.responses(k)))
        k = stream_k
        taken.append(self.record(f"chat-stream-k{k}", chat, s.chat(k, **STREAM)))
        taken.append(
            self.record(f"completions-stream-k{k}", completions, s.completions(k, **STREAM))
        )
        if s.n == 1:
            taken.append(
                self.record(f"responses-stream-k{k}", responses, s.responses(k, stream=True))
            )
        return taken


def errors_and_absences(http: Http) -> list[Json]:
    """Refusals of the server, and answers to requests with only one of two needed parameters."""
    s = SCENARIOS["greedy"]
    chat = http.client.chat.completions.create
    completions = http.client.completions.create
    responses = http.client.responses.create
    include = ["message.output_text.logprobs"]
    return [
        http.record("chat-k21", chat, s.chat(21)),
        http.record("completions-k21", completions, s.completions(21)),
        http.record("responses-k21", responses, s.responses(21)),
        http.record("chat-top-without-logprobs", chat, s.chat(top_logprobs=3)),
        http.record("chat-unknown-model", chat, s.chat(5) | {"model": "nope"}),
        http.record("chat-none", chat, s.chat()),
        http.record("chat-k0", chat, s.chat(0)),
        http.record("completions-none", completions, s.completions()),
        http.record("completions-k0", completions, s.completions(0)),
        http.record("responses-none", responses, s.responses()),
        http.record("responses-include-only", responses, s.responses(include=include)),
        http.record("responses-top-only", responses, s.responses(top_logprobs=3)),
    ]


def others(http: Http) -> list[Json]:
    """Prompt tokens in the answer, and tool calls."""
    s = SCENARIOS["greedy"]
    chat = http.client.chat.completions.create
    completions = http.client.completions.create
    responses = http.client.responses.create
    tools = {
        "tools": [{"type": "function", "function": ADD}],
        "tool_choice": {"type": "function", "function": {"name": "add"}},
        "max_tokens": 64,
    }
    flat_tools = {
        "tools": [{"type": "function", **ADD}],
        "tool_choice": {"type": "function", "name": "add"},
        "max_output_tokens": 64,
    }
    return [
        http.record("echo", completions, s.completions(5, echo=True)),
        http.record("echo-stream", completions, s.completions(5, echo=True, **STREAM)),
        http.record(
            "echo-stream-without-usage", completions, s.completions(5, echo=True, stream=True)
        ),
        http.record("tool", chat, s.chat(3) | tools),
        http.record("tool-stream", chat, s.chat(3) | tools | {"stream": True}),
        http.record("responses-tool", responses, s.responses(3) | flat_tools),
        http.record(
            "responses-tool-stream", responses, s.responses(3) | flat_tools | {"stream": True}
        ),
    ]


def as_json(output: RequestOutput) -> Json:
    return {
        "request_id": output.request_id,
        "prompt": output.prompt,
        "prompt_token_ids": output.prompt_token_ids,
        "finished": output.finished,
        "outputs": [
            {
                "index": c.index,
                "text": c.text,
                "token_ids": list(c.token_ids),
                "cumulative_logprob": c.cumulative_logprob,
                "finish_reason": c.finish_reason,
                "stop_reason": c.stop_reason,
                "logprobs": _logprobs_as_json(c.logprobs),
            }
            for c in output.outputs
        ],
    }


def _logprobs_as_json(logprobs: Any) -> Any:
    """A FlatLogprobs as its six lists; a dict list as lists of [id, logprob, rank, token]."""
    if isinstance(logprobs, FlatLogprobs):
        return vars(logprobs)
    if logprobs is None:
        return None
    return [
        [[token, p.logprob, p.rank, p.decoded_token] for token, p in position.items()]
        for position in logprobs
    ]


def offline_scenarios() -> dict[str, list[Json]]:
    """Dict lists and FlatLogprobs at every k; AsyncLLM, cumulative and by deltas, at k = 2."""
    blocking, streaming = [], []
    for s in SCENARIOS.values():
        for k in (*KS, 0) if s.name == "sampled" else (5,):
            for flat in (False, True):
                name = f"{'flat' if flat else 'dict'}-k{k}"
                params = sampling_params(s, k, flat_logprobs=flat)
                blocking.append((s.name, name, (s.raw_prompt, params)))
        if s.name in ("sampled", "two"):
            for kind in (RequestOutputKind.CUMULATIVE, RequestOutputKind.DELTA):
                for flat in (False, True):
                    name = f"async-{kind.name.lower()}-{'flat' if flat else 'dict'}-k2"
                    params = sampling_params(
                        s, 2, flat_logprobs=flat, output_kind=kind, max_tokens=8
                    )
                    streaming.append((s.name, name, (s.raw_prompt, params)))
    taken: dict[str, list[Json]] = {name: [] for name in SCENARIOS}
    outputs = llm_outputs([job for _, _, job in blocking])
    for (scenario, name, _), output in zip(blocking, outputs, strict=True):
        taken[scenario].append({"name": name, "output": as_json(output)})
    streams = async_chunks([job for _, _, job in streaming])
    for (scenario, name, _), chunks in zip(streaming, streams, strict=True):
        taken[scenario].append({"name": name, "chunks": [as_json(chunk) for chunk in chunks]})
    return taken


def offline_tied() -> list[Json]:
    params = [sampling_params(TIED, 5, flat_logprobs=flat) for flat in (False, True)]
    outputs = llm_outputs([(TIED.raw_prompt, p) for p in params], dtype="bfloat16")
    return [
        {"name": f"{shape}-k5", "output": as_json(output)}
        for shape, output in zip(("dict", "flat"), outputs, strict=True)
    ]


def offline_modes() -> list[Json]:
    """The same generation under each `logprobs_mode`, its sampling cut to the three best tokens."""
    s = SCENARIOS["sampled"]
    params = [sampling_params(s, 5, top_k=3, max_tokens=12, flat_logprobs=f) for f in (False, True)]
    taken = []
    for mode in ("raw_logprobs", "processed_logprobs", "raw_logits", "processed_logits"):
        outputs = llm_outputs([(s.raw_prompt, p) for p in params], logprobs_mode=mode)
        for shape, output in zip(("dict", "flat"), outputs, strict=True):
            taken.append({"name": f"{mode}-{shape}", "output": as_json(output)})
    return taken


def write(name: str, captures: Iterable[Json]) -> None:
    """One capture per line: small, and still a readable diff."""
    lines = ",\n".join(json.dumps(c, ensure_ascii=False, separators=(",", ":")) for c in captures)
    path = CAPTURES / f"{name}.json"
    path.write_text(f"[\n{lines}\n]\n")
    print(f"{path.name}: {path.stat().st_size:,} bytes")


def main() -> None:
    os.environ.update(ENVIRONMENT)
    CAPTURES.mkdir(exist_ok=True)
    with serving("--enable-auto-tool-choice", "--tool-call-parser", "hermes") as base_url:
        http = Http(base_url)
        by_http = {
            name: http.scenario(s, KS if name == "sampled" else (5,), stream_k=5)
            for name, s in SCENARIOS.items()
        }
        write("errors", errors_and_absences(http))
        write("others", others(http))
    for name, captures in offline_scenarios().items():
        write(name, [*by_http[name], *captures])
    write("modes", offline_modes())
    with serving("--reasoning-parser", "granite", *IN_REASONING) as base_url:
        taken = Http(base_url).scenario(REASONED, (3,), stream_k=3)
        write("reasoned", [c for c in taken if c["path"] != "/v1/completions"])  # never splits
    with serving("--dtype", "bfloat16") as base_url:
        tied = Http(base_url).scenario(TIED, (5,), stream_k=5)
    write("tied", [*tied, *offline_tied()])


if __name__ == "__main__":
    main()
