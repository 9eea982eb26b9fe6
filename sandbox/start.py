"""Starts the supervisor in a bare Python: its source code is sent over the control socket.

So nothing has to be mounted or installed on the other side, and both sides have one version.
"""

from __future__ import annotations

import base64
import json
import secrets
import socket
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from gatekeeper.sandbox import seccomp

__all__ = ["LOADER", "Limits", "send_program"]

Limits = Mapping[str, int]
"""cpu_seconds, memory_mb, disk_mb, processes; 0 where something else sets the limit."""

_PACKAGES = ("gatekeeper", "gatekeeper.sandbox", "gatekeeper.sandbox.inside")
_MODULES = (
    "wire",
    "nodes",
    "operations",
    "pandas_values",
    "places",
    "library_values",
    "loans",
    "codec",
    "decoding",
    "tasks",
    "packages",
    "library_errors",
    "references",
    "conversations",
    "peer",
    "facts",
    "outputs",
    "surroundings",
    "signatures",
    "handles",
    "candidate_peer",
    "kinds",
    "within",
    "offered",
    "private",
    "shown",
    "guard",
    "looks",
    "standins",
    "forwarders",
    "decisions",
    "classes",
    "exceptions",
    "assertions",
    "asserting",
    "handed_over",
    "arguments",
    "wrappers",
    "remote",
    "batching",
    "wrapped",
    "counting",
    "state",
    "frameworks",
    "identity",
    "collect",
    "unseen",
    "chosen",
    "heard",
    "texts",
    "names",
    "judge",
    "usual",
    "child",
    "warmup",
    "lockdown",
    "files",
    "procfs",
    "streams",
    "supervisor",
)  # each after those that it imports

# The argument is a path to connect to, or the number of an inherited socket.
LOADER = """
import json, site, socket, sys, types
where = sys.argv.pop()
site.setquit()
sys.path[:] = [path for path in sys.path if path]
if where.isdigit():
    control = socket.socket(fileno=int(where))
else:
    control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    control.connect(where)
for name, source in iter(lambda: json.loads(control.recv(1 << 20)), None):
    module = sys.modules[name] = types.ModuleType(name)
    if source is None:
        module.__path__ = []
    else:
        exec(compile(source, name, "exec"), module.__dict__)
module.main(control)
"""


def send_program(
    control: socket.socket,
    level: str,
    limits: Limits,
    *,
    paths: Sequence[str] = (),
) -> None:
    """Send the supervisor its program and its settings.

    Parameters
    ----------
    control
        The socket to it.
    level
        "docker", or a level of `LocalSandbox`.
    limits
        The limits of a process.
    paths
        Files and folders that candidates can read, if the supervisor makes their root directory.
    """
    # Docker loads the same rules itself, and everything that it starts inherits them.
    rules = b""
    if level not in ("docker", "none"):
        rules = seccomp.program(network=level == "namespaces")
    settings: dict[str, Any] = {
        "level": level,
        "limits": dict(limits),
        "paths": list(paths),
        # The kernel counts processes by user, so supervisors should have different ones.
        "first_uid": (0x7000 + secrets.randbelow(0x7000)) << 16,
        "seccomp": base64.b64encode(rules).decode(),
    }
    for part in _program():
        control.send(part)
    control.send(json.dumps(settings).encode())


@cache  # so that all supervisors have the same, even if the package is replaced meanwhile
def _program() -> Sequence[bytes]:
    """A message for each module, as one for all would not fit into the buffer of a socket."""
    inside = resources.files("gatekeeper.sandbox.inside")
    program: list[tuple[str, str | None]] = [(name, None) for name in _PACKAGES]
    for name in _MODULES:
        source = inside.joinpath(f"{name}.py").read_text(encoding="utf-8")
        program.append((f"{_PACKAGES[-1]}.{name}", source))
    return [json.dumps(part).encode() for part in (*program, None)]
