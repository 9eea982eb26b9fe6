"""Sandboxes: verifiers that run code candidates against their tests."""

from gatekeeper.sandbox.docker_sandbox import DockerSandbox
from gatekeeper.sandbox.local import LocalSandbox

__all__ = ["DockerSandbox", "LocalSandbox"]
