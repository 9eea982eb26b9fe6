"""The evaluation of instances by SWE-bench itself, each in a container."""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import inspect
import os
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from gatekeeper.adapters.harness.release import unusable
from gatekeeper.adapters.swebench.predictions import Prediction
from gatekeeper.adapters.swebench.reports import check_patches, outcome_of, remove_cut_off
from gatekeeper.errors import BadInputError, SandboxUnavailableError
from gatekeeper.sandbox.engine import connect
from gatekeeper.types import Outcome, Verdict
from gatekeeper.wording import counted, one_line

__all__ = ["Evaluation", "swebench"]

TESTED = "5.0.2"
RUN_INSTANCE = ("test_spec", "pred", "client", "run_id", "timeout")  # its parameters used here
ANSWER = 1800.0  # seconds: SWE-bench's own limit of the engine, which may pull an image


def swebench(name: str) -> Any:
    """The object `swebench.<name>`. Raises MissingDependencyError without SWE-bench, and
    BadInputError for a release that lacks it."""
    module, _, attribute = name.rpartition(".")
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return getattr(importlib.import_module(f"swebench.{module}"), attribute)
    except (ImportError, AttributeError) as e:
        raise unusable("swebench", TESTED, extra="swebench", error=e) from e


class Evaluation:
    """SWE-bench's `run_instance`: one container for each prediction.

    Its files are `logs/run_evaluation/RUN_ID/MODEL/INSTANCE` in the working directory. An instance
    that has a report there is not run again.

    Parameters
    ----------
    dataset, split : str
        A name of SWE-bench's or of Hugging Face's, or a local `.json`, `.jsonl` or `.parquet` file.
    predictions : sequence of Prediction
    run_id : str
        Name of the folder, and of the containers.
    timeout : int
        Seconds for the tests of an instance.

    Raises
    ------
    BadInputError
        For a data set that cannot be loaded, or that lacks an instance; for a run id that no
        container can have, or that another run on this machine has; and where the folder has
        reports of other patches.
    SandboxUnavailableError
        No engine answers, or there is no command `docker`, by which SWE-bench stops containers.
    """

    def __init__(
        self,
        dataset: str,
        split: str,
        predictions: Sequence[Prediction],
        *,
        run_id: str,
        timeout: int,
    ) -> None:
        if not re.fullmatch(r"[a-zA-Z0-9_.-]+", run_id):
            raise BadInputError(
                f"--run-id {run_id!r} is part of the names of containers: give letters, digits and "
                "any of _ . -"
            )
        self._run_instance = _known(swebench("harness.run_evaluation.run_instance"))
        self._report = swebench("harness.reporting.make_run_report")
        self._logs: Path = swebench("harness.constants.RUN_EVALUATION_LOG_DIR") / run_id
        found = _instances(dataset, split)
        self.total = len(found)  # instances of the data set
        missing = [p.instance for p in predictions if p.instance not in found]
        if missing:
            raise BadInputError(
                f"--dataset {dataset} (--split {split}) lacks the instances of "
                f"{counted(len(missing), 'prediction')}, the first {missing[0]!r}"
            )
        check_patches(
            [(p, self._place(p)) for p in predictions], f"give another --run-id than {run_id}"
        )
        self._instances = [found[p.instance] for p in predictions]
        self._specs = {p.instance: _spec(found[p.instance]) for p in predictions}
        self._run_id, self._timeout = run_id, timeout
        if shutil.which("docker") is None:
            raise SandboxUnavailableError(
                "there is no command `docker` on the PATH: SWE-bench stops its containers by it"
            )
        self._lock = _lock(run_id)
        try:
            self._client = connect(seconds=ANSWER)
        except BaseException:
            self._lock.close()
            raise
        self._remove({p.instance for p in predictions})  # of a run that was killed
        for prediction in predictions:
            remove_cut_off(self._place(prediction))
        self._stopped = threading.Event()
        self._running: set[str] = set()

    def check(self, prediction: Prediction) -> Outcome:
        """Evaluate one prediction. Called from several threads."""
        spec = self._specs[prediction.instance]
        given = (spec, prediction.as_dict(), self._client, self._run_id, self._timeout)
        self._running.add(prediction.instance)  # before the question: `stop` asks after its answer
        try:
            if self._stopped.is_set():
                return Outcome(Verdict.INFRA_ERROR, detail="stopped")
            self._run_instance(**dict(zip(RUN_INSTANCE, given, strict=True)))
        finally:
            self._running.discard(prediction.instance)
        return outcome_of(self._place(prediction), prediction)

    def write_report(self, predictions: Sequence[Prediction]) -> Path:
        """SWE-bench's own file of results, `MODEL.RUN_ID.json`, in the working directory.

        It prints which containers and images are left, unless the engine's list of them fails.
        """
        from docker.errors import DockerException
        from requests.exceptions import RequestException

        by_instance = {p.instance: p.as_dict() for p in predictions}
        given = (by_instance, self._instances, self._run_id)
        written: Path
        try:
            written = self._report(*given, self._client)
        except (DockerException, RequestException):
            # SWE-bench looks at every container of the engine, and fails where another program
            # removes one meanwhile. The results need no engine.
            written = self._report(*given, None)
        return written

    def stop(self) -> None:
        """Remove the containers that are at work: what runs in them has no verdict."""
        self._stopped.set()
        self._remove(set(self._running))

    def close(self) -> None:
        """Close the connection to the engine. Another run may then have the run id."""
        self._client.close()
        self._lock.close()

    def _remove(self, instances: set[str]) -> None:
        """Remove the containers of these instances that are there, in this run's name."""
        from docker.errors import DockerException
        from requests.exceptions import RequestException

        names = {f"/sweb.eval.{instance.lower()}.{self._run_id}" for instance in instances}
        with contextlib.suppress(DockerException, RequestException):  # another may be quicker
            for found in self._client.api.containers(all=True, filters={"name": "sweb.eval."}):
                if names & set(found["Names"]):
                    self._client.api.remove_container(found["Id"], force=True)

    def _place(self, prediction: Prediction) -> Path:
        return self._logs / prediction.folder / prediction.instance


def _lock(run_id: str) -> BinaryIO:
    """A file that is locked until it is closed, so that one run at a time has the run id.

    Containers are named by instance and run id, not by folder, and those of this name are removed
    before an instance is evaluated. Raises BadInputError while another run has it.
    """
    path = Path(tempfile.gettempdir(), f"gatekeeper-swebench-{run_id}.lock")
    with contextlib.suppress(FileExistsError):
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL)
        os.fchmod(descriptor, 0o444)  # for other users of the engine, whatever the umask
        os.close(descriptor)
    file = path.open("rb")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise BadInputError(
            f"--run-id {run_id}: another run on this machine has it, and its containers have the "
            "same names: give another --run-id, or wait for that run"
        ) from None
    return file


def _known(run_instance: Any) -> Any:
    """`run_instance`, if it takes what is passed to it."""
    takes = inspect.signature(run_instance).parameters
    needs = {name for name, p in takes.items() if p.default is p.empty}
    if not set(RUN_INSTANCE) <= takes.keys() or needs - set(RUN_INSTANCE):
        error = AttributeError(f"run_instance takes {', '.join(takes)}", name="swebench")
        raise unusable("swebench", TESTED, extra="swebench", error=error)
    return run_instance


def _instances(dataset: str, split: str) -> dict[str, dict[str, Any]]:
    """The instances of a data set, by id."""
    name = swebench("cli._datasets.resolve_dataset")(dataset)
    load = swebench("harness.utils.load_swebench_dataset")
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return {each["instance_id"]: each for each in load(name, split)}
    except Exception as e:  # of a download or a file: SWE-bench documents none
        raise BadInputError(
            f"--dataset {dataset} (--split {split}) cannot be loaded: {one_line(e)}. It may "
            "also be a local .json, .jsonl or .parquet file"
        ) from e


def _spec(instance: dict[str, Any]) -> Any:
    try:
        return swebench("harness.utils.make_test_spec")(instance)
    except (LookupError, ValueError, TypeError, AttributeError) as e:
        raise BadInputError(
            f"instance {instance['instance_id']!r} of the data set has no usable field {e}: "
            f"SWE-bench {TESTED} needs image, eval_script, log_parser and eval_type, as the data "
            "sets SWE-bench/… on Hugging Face have them"
        ) from e
