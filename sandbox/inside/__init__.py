"""The sandboxed side: programs that run next to, or as, untrusted code.

Standard library only, and nothing of gatekeeper outside this package: `gatekeeper.sandbox.start`
sends these sources over the control socket to a bare Python, which runs them.
"""
