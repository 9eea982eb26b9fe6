"""The sandboxed side: programs that run beside untrusted code, or execute it.

Standard library only, and nothing of gatekeeper outside this package: `gatekeeper.sandbox.start`
sends these sources over the control socket to a bare Python, which runs them.
"""
