"""The connection to the Docker engine."""

from __future__ import annotations

import os
from contextlib import closing
from typing import Any

from gatekeeper.errors import MissingDependencyError, SandboxUnavailableError

__all__ = ["connect"]


def connect(*, seconds: float = 60.0) -> Any:
    """Connect to the engine that DOCKER_HOST names, else to this machine's.

    Even after errors, no socket stays open once the client is closed.

    Parameters
    ----------
    seconds
        How long the client waits for each answer.

    Returns
    -------
    docker.DockerClient
        To be closed by the caller.

    Raises
    ------
    MissingDependencyError
        Without the extra "docker".
    SandboxUnavailableError
        No engine answers, or it refuses this user.
    """
    try:
        from docker.constants import MINIMUM_DOCKER_API_VERSION
        from docker.errors import DockerException
        from requests.exceptions import RequestException
    except ImportError:
        raise MissingDependencyError(
            "docker", extra="docker", needed_for="the Docker sandbox"
        ) from None
    host = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    try:
        # If a constructor asks for the version and fails, there is no client to close.
        with closing(_client(seconds, MINIMUM_DOCKER_API_VERSION)) as client:
            version = client.api.version(api_version=False)["ApiVersion"]
        return _client(seconds, version)
    except (DockerException, RequestException, OSError, ValueError, LookupError, TypeError) as e:
        if "PermissionError" in str(e):
            raise SandboxUnavailableError(
                f"this user may not use the Docker engine at {host}: "
                "add it to the group `docker`, or be root"
            ) from e
        raise SandboxUnavailableError(
            f"no Docker engine answers at {host}: start it (`dockerd`), or set DOCKER_HOST"
        ) from e


def _client(seconds: float, version: str) -> Any:
    """A client that has not yet connected."""
    import docker
    from docker.transport import UnixHTTPAdapter

    from gatekeeper.sandbox.engine_socket import ClosingAdapter

    client = docker.from_env(timeout=seconds, version=version)
    for prefix, adapter in list(client.api.adapters.items()):
        if type(adapter) is UnixHTTPAdapter:
            client.api.mount(prefix, ClosingAdapter(adapter))
    return client
