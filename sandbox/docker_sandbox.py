"""`DockerSandbox`: candidates run in hardened containers that are kept warm."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from gatekeeper.errors import SandboxUnavailableError
from gatekeeper.sandbox import image as images
from gatekeeper.sandbox.base import Sandbox
from gatekeeper.sandbox.engine import connect
from gatekeeper.sandbox.evaluate import Judged
from gatekeeper.sandbox.run_loop import End
from gatekeeper.sandbox.worker import LostError

__all__ = ["DockerSandbox"]

ANSWER_SECONDS = 10.0  # for an engine that is asked something simple


class DockerSandbox(Sandbox):
    """A verifier of Python programs: one candidate at a time in each of `workers` containers.

    `image` is the name of an image with Python 3.10 or newer (pulled where it is not here), by
    default the one that `gatekeeper sandbox build` makes; `requirements` are pip packages to add
    to it; `runtime` another OCI runtime of the engine, such as "runsc" (default: runsc where the
    engine has it, else its own). `meta["image"]` of each outcome is the image's digest.

    Limits: `timeout` wall-clock seconds; `cpu_seconds` (default: `timeout` rounded up) of each
    process; `memory_mb` MiB and `processes` of all the candidate's processes together, threads
    counted, and the supervisor's few; `output_kb` KiB of standard output and error; `disk_mb` MiB
    of files. A container that a candidate left anything in, or that ran into a limit, is thrown
    away; a spare takes its place.

    Raises MissingDependencyError without the extra "docker", SandboxUnavailableError where there
    is no engine or no image, BadInputError for impossible limits.
    """

    def __init__(
        self,
        *,
        image: str | None = None,
        requirements: Sequence[str] = (),
        runtime: str | None = None,
        timeout: float = 5.0,
        cpu_seconds: int | None = None,
        memory_mb: int = 512,
        processes: int = 64,
        output_kb: int = 4096,
        disk_mb: int = 64,
        workers: int | None = None,
        in_process: bool = False,
    ) -> None:
        super().__init__(
            timeout=timeout,
            cpu_seconds=cpu_seconds,
            memory_mb=memory_mb,
            processes=processes,
            output_kb=output_kb,
            disk_mb=disk_mb,
            workers=workers,
            in_process=in_process,
        )
        with closing(connect(seconds=ANSWER_SECONDS)) as client:
            from gatekeeper.sandbox import containers  # it needs the extra

            try:
                containers.reap(client)
                runtimes = client.info().get("Runtimes", {})
            except (LostError, OSError) as error:  # it went away meanwhile
                raise SandboxUnavailableError(str(error)) from error
        with closing(connect()) as client:  # a build takes its time
            self.image = images.find(client, image, requirements)
        limits = containers.ContainerLimits(
            memory_mb=memory_mb,
            processes=processes,
            disk_mb=disk_mb,
            cpu_seconds=self._cpu_seconds,
        )
        runtime = runtime or ("runsc" if "runsc" in runtimes else None)
        self._open(containers.Starter(self.image, limits, runtime), spare=True)

    def _tainted(self, judged: Judged) -> bool:
        report, end = judged.finished.report, judged.finished.end
        limited = end in (End.DEADLINE, End.OUTPUT) or report.memory or report.processes
        return bool(report.left or limited)
