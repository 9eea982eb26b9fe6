"""`DockerSandbox`: candidates run in hardened containers that are kept warm."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import closing

from gatekeeper.arguments import check_choice
from gatekeeper.errors import SandboxUnavailableError
from gatekeeper.sandbox import image as images
from gatekeeper.sandbox.base import Sandbox
from gatekeeper.sandbox.engine import connect
from gatekeeper.sandbox.evaluate import Judged
from gatekeeper.sandbox.run_loop import End
from gatekeeper.sandbox.worker import LostError

__all__ = ["DockerSandbox"]

ANSWER_SECONDS = 10.0  # for a simple request to the engine
IS_SHIM = re.compile(r"[./]")  # a name or a path, which containerd finds; no engine lists it


class DockerSandbox(Sandbox):
    """A verifier of Python programs: one candidate at a time in each of `workers` containers.

    A container in which a candidate left anything, or that ran into a limit, is replaced by a
    spare. `meta["image"]` of each outcome is the image's digest.

    Parameters
    ----------
    image
        Name of an image with Python 3.10 or newer, pulled where it is not on this machine; None:
        the one that `gatekeeper sandbox build` makes.
    requirements
        Packages to add to it, as pip takes them: "numpy>=2".
    runtime
        An OCI runtime of the engine, such as "runsc", or a shim of containerd, such as
        "io.containerd.kata.v2"; None: runsc where the engine has it, else the engine's own.
    timeout
        Wall-clock seconds of a candidate's own time: waiting for a processor does not count, up to
        four times this.
    cpu_seconds
        Processor seconds of each process; None: `timeout` rounded up.
    memory_mb
        MiB of all processes of the candidate together, and of the supervisor.
    processes
        Processes and threads of the candidate together, and the supervisor's few.
    output_kb
        KiB of standard output and standard error together.
    disk_mb
        MiB of files.
    workers
        Candidates that run at once; None: the number of processors.
    in_process
        Whether tests that are not literal run beside the candidate, which can then forge them.

    Raises
    ------
    MissingDependencyError
        Without the extra "docker".
    SandboxUnavailableError
        There is no engine or no image.
    BadInputError
        A limit is not a number above 0, a requirement is invalid, the image has no name, or the
        engine does not have the runtime.
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
                engine = client.info()
            except (LostError, OSError) as error:  # the engine has ended meanwhile
                raise SandboxUnavailableError(str(error)) from error
        runtimes = engine.get("Runtimes") or {}
        if runtime is None:
            runtime = "runsc" if "runsc" in runtimes else None
        elif not (isinstance(runtime, str) and IS_SHIM.search(runtime)):
            check_choice("runtime", runtime, runtimes)
        with closing(connect()) as client:  # without a short timeout: a build takes long
            self.image = images.find(client, image, requirements)
        limits = containers.ContainerLimits(
            memory_mb=memory_mb,
            processes=processes,
            disk_mb=disk_mb,
            cpu_seconds=self._cpu_seconds,
        )
        same_root = containers.has_same_root(engine)
        start = containers.Starter(self.image, limits, runtime, same_root=same_root)
        self._open(start, spare=True)

    def _tainted(self, judged: Judged) -> bool:
        report, end = judged.finished.report, judged.finished.end
        limited = end in (End.DEADLINE, End.OUTPUT) or report.memory or report.processes
        return bool(report.left or limited)
