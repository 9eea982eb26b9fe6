"""Verification on a Ray cluster of two nodes on this machine, on which actors and nodes die."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from logged_runs import events

ray = pytest.importorskip("ray")
from ray.cluster_utils import Cluster  # noqa: E402

import gatekeeper  # noqa: E402
from gatekeeper import Budget, Generation, Outcome, Verdict, VerificationGate  # noqa: E402
from gatekeeper.adapters.generate import bundled_generator  # noqa: E402
from gatekeeper.errors import (  # noqa: E402
    BadInputError,
    GatekeeperError,
    GeneratorUnavailableError,
)
from gatekeeper.log.run import read_run  # noqa: E402
from gatekeeper.ray import RayGenerator, RayVerifier, VerifyRows  # noqa: E402
from gatekeeper.sandbox import LocalSandbox  # noqa: E402

PATIENCE = 300.0  # seconds: only against hanging for ever, on a loaded machine
CODE = {"kind": "code", "entry_point": "double", "tests": ["assert double(2) == 4"]}


class Notes:
    """Passes "right", fails anything else, and notes each call as a line of a file."""

    def __init__(self, file: str, seconds: float = 0.0) -> None:
        self.file, self.seconds = file, seconds

    def verify(self, generation: Generation, task: Any) -> Outcome:
        with open(self.file, "a") as notes:
            notes.write(f"{generation.id} {os.getpid()}\n")
        if generation.text == "kills":
            os.kill(os.getpid(), signal.SIGKILL)
        if generation.text == "raises":
            raise RuntimeError("no connection")
        time.sleep(self.seconds)
        return Outcome(Verdict.PASSED if generation.text == "right" else Verdict.FAILED)


def dies_at_first(file: str) -> Model:
    """Kills the first actor that calls it, as the death of a node does."""
    if not Path(file).exists():
        Path(file).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return Model(file)


class Unavailable:
    def __init__(self) -> None:
        raise OSError("no engine here")


class Model:
    """Answers with the number of calls so far; a prompt may kill its actor, or raise."""

    prompt_template = "{prompt}"

    def __init__(self, file: str) -> None:
        self.file = Path(file)

    def __call__(self, prompts: Any, ids: Any, *, temperature: float = 0.0) -> list[Generation]:
        with self.file.open("a") as notes:
            notes.write(f"{os.getpid()}\n")
        if "kills" in prompts or ("kills once" in prompts and len(self.notes()) == 1):
            os.kill(os.getpid(), signal.SIGKILL)
        if "raises" in prompts:
            raise GeneratorUnavailableError("the context is too short")
        time.sleep(0.3)
        texts = [f"{prompt} at {temperature}" for prompt in prompts]
        return [Generation(id_, text) for id_, text in zip(ids, texts, strict=True)]

    def notes(self) -> list[str]:
        return self.file.read_text().splitlines()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A head, where only this process is, and two nodes with one processor each."""
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(Path(__file__).parent), *filter(None, sys.path)]
    )
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    for _ in range(2):
        cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def outputs(texts: list[str]) -> list[tuple[Generation, Any]]:
    return [(Generation(f"{n}", text), None) for n, text in enumerate(texts)]


def on_both_nodes(pool: RayVerifier) -> None:
    """Wait until each node has an actor."""
    deadline = time.monotonic() + PATIENCE
    while list(pool.nodes.values()) != [1, 1]:
        assert time.monotonic() < deadline, pool.nodes
        time.sleep(0.05)


def forgotten() -> None:
    """Wait until Ray knows that a node is gone: until then it starts actors there."""
    deadline = time.monotonic() + PATIENCE
    while sum(node["Alive"] for node in ray.nodes()) > 2:  # the head and the other one
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_verdicts_are_those_of_the_sandbox(cluster: Cluster) -> None:
    right, wrong = "def double(x):\n    return 2 * x", "def double(x):\n    return x"
    pairs = [(Generation(f"{n}", wrong if n % 3 else right), CODE) for n in range(12)]
    with RayVerifier(partial(LocalSandbox, timeout=5.0), batch=4) as pool:
        on_both_nodes(pool)
        assert pool.max_seconds == LocalSandbox(timeout=5.0).max_seconds
        found = pool.verify_batch(pairs)
    expected = [LocalSandbox().verify(*pair).verdict for pair in pairs[:2]]
    assert expected == [Verdict.PASSED, Verdict.FAILED]
    assert [o.verdict for o in found] == [expected[bool(n % 3)] for n in range(12)]
    assert all(o.seconds > 0 for o in found)


def test_an_output_that_kills_its_actor_takes_no_other_with_it(
    cluster: Cluster, tmp_path: Path
) -> None:
    texts = ["right"] * 6 + ["kills"] + ["wrong"] * 5 + ["raises"]
    with RayVerifier(partial(Notes, str(tmp_path / "notes"))) as pool:
        found = pool.verify_batch(outputs(texts))
    verdict = {"right": Verdict.PASSED, "wrong": Verdict.FAILED}
    assert [o.verdict for o in found] == [verdict.get(t, Verdict.INFRA_ERROR) for t in texts]
    assert "3 attempts" in found[6].detail
    assert found[-1].detail == "RuntimeError: no connection"
    tried = Counter(line.split()[0] for line in (tmp_path / "notes").read_text().splitlines())
    assert tried["6"] == 3


class Unreadable:
    """Is pickled here, and cannot be read elsewhere."""

    def __reduce__(self) -> Any:
        return os.stat, ("/no/such/file",)


class Kept(Outcome):
    def __reduce__(self) -> Any:
        raise TypeError("it stays here")


class Keeps(Notes):
    def verify(self, generation: Generation, task: Any) -> Outcome:
        outcome = super().verify(generation, task)
        return Kept(outcome.verdict, seconds=1.0) if task == "keep" else outcome


def test_what_cannot_be_sent_ends_alone_and_costs_no_actor(
    cluster: Cluster, tmp_path: Path
) -> None:
    tasks: list[Any] = [None] * 12
    tasks[2], tasks[5], tasks[8] = {"own": threading.Lock()}, Unreadable(), "keep"
    with RayVerifier(partial(Keeps, str(tmp_path / "notes")), actors=1) as pool:
        pids = set()
        for _ in range(2):
            pairs = [(Generation(f"{n}", "right"), task) for n, task in enumerate(tasks)]
            found = pool.verify_batch(pairs)
            pids |= {line.split()[1] for line in (tmp_path / "notes").read_text().splitlines()}
    assert len(pids) == 1
    failed = {n: o.detail for n, o in enumerate(found) if o.verdict is not Verdict.PASSED}
    assert set(failed) == {2, 5, 8}
    assert "task['own'] cannot be pickled: TypeError: cannot pickle '_thread.lock'" in failed[2]
    assert "/no/such/file" in failed[5]
    assert "it stays here" in failed[8]
    with pytest.raises(BadInputError, match=r"make=functools.*: it cannot be pickled"):
        RayVerifier(partial(Notes, threading.Lock()))


def test_a_node_dies_and_each_verification_ends_elsewhere_charged_once(
    cluster: Cluster, tmp_path: Path
) -> None:
    notes, count = tmp_path / "notes", 60
    with (
        RayVerifier(partial(Notes, str(notes), 0.05), batch=8) as pool,
        VerificationGate(
            "random",
            budget=Budget(fraction=1),
            verifier=pool,
            log=str(tmp_path / "a.db"),
            workers=16,
        ) as gate,
        ThreadPoolExecutor(1) as thread,
    ):
        on_both_nodes(pool)
        results = thread.submit(gate.verify_batch, outputs(["right", "wrong"] * (count // 2)))
        while not notes.exists() or len(notes.read_text().splitlines()) < 6:
            time.sleep(0.01)
        cluster.remove_node(sorted(cluster.worker_nodes, key=id)[0], allow_graceful=False)
        found = results.result(timeout=PATIENCE)
        status = gate.status()
        assert len(pool.nodes) == 1
    assert [r.outcome.verdict for r in found] == [Verdict.PASSED, Verdict.FAILED] * (count // 2)
    assert status.spent + status.warmup_spent == count
    forgotten()
    cluster.add_node(num_cpus=1)


def test_generators_answer_at_the_same_time_as_one_does_here(cluster: Cluster) -> None:
    prompts, ids = ["What is 3 + 4?", "What is 5 * 6?"], ["a", "b"]
    expected = bundled_generator()(prompts, ids)
    with (
        RayGenerator(bundled_generator, actors=2, gpus=0) as generate,
        ThreadPoolExecutor(4) as threads,
    ):
        calls = [threads.submit(generate, prompts, ids) for _ in range(4)]
        for call in calls:
            assert [(g.id, g.text) for g in call.result(60)] == [(g.id, g.text) for g in expected]
            assert (call.result()[0].logprob == expected[0].logprob).all()


def test_a_generator_that_dies_is_replaced(cluster: Cluster, tmp_path: Path) -> None:
    model = Model(str(tmp_path / "notes"))
    with RayGenerator(partial(Model, str(model.file)), gpus=0) as generate:
        assert generate.prompt_template == "{prompt}"
        (answer,) = generate(["kills once"], ["a"], temperature=0.5)
        assert answer.text == "kills once at 0.5"
        assert len(set(model.notes())) == 2
        with pytest.raises(GeneratorUnavailableError, match="the context is too short"):
            generate(["raises"], ["b"])
        assert len(set(model.notes())) == 2  # the actor lives on
        with pytest.raises(GeneratorUnavailableError, match="3 actors died"):
            generate(["kills"], ["c"])
        assert generate(["right"], ["d"])[0].text == "right at 0.0"


def test_an_actor_that_dies_while_it_loads_its_model_is_replaced(
    cluster: Cluster, tmp_path: Path
) -> None:
    notes = str(tmp_path / "notes")
    with RayGenerator(partial(dies_at_first, notes), actors=2, gpus=0) as generate:
        for id_ in ("a", "b"):  # one for each actor
            assert generate(["right"], [id_])[0].text == "right at 0.0"


def test_a_closed_generator_leaves_no_call_waiting(cluster: Cluster, tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as threads:
        with RayGenerator(partial(Model, str(tmp_path / "notes")), gpus=0) as generate:
            calls = [threads.submit(generate, ["right"], ["a"]) for _ in range(4)]
            wait(calls, timeout=PATIENCE, return_when=FIRST_COMPLETED)
        ended = [call.exception(60) for call in calls]
    found = [error for error in ended if error is not None]
    assert len(found) >= 2  # one was answered, and one may have been at work
    assert all(isinstance(error, GeneratorUnavailableError) for error in found)
    with pytest.raises(GeneratorUnavailableError, match="was closed"):
        generate(["right"], ["b"])


DRIVER = """
import sys
import ray
from functools import partial
from gatekeeper import Budget, VerificationGate
from gatekeeper.ray import RayVerifier
from test_ray import Notes, outputs
address, notes, log, figures = sys.argv[1:]
with RayVerifier(partial(Notes, notes, 0.03), address=address, batch=4) as pool:
    gate = VerificationGate("random", budget=Budget(fraction=1), verifier=pool, log=log, workers=8)
    with gate:
        pairs = outputs(["right", "wrong"] * 30)
        pending = {g.id for g in gate.pending()}
        for start in range(0, 60, 10):
            block = [p for p in pairs[start : start + 10]
                     if p[0].id in pending or gate.find(p[0].id) is None]
            gate.verify_batch(block)
        status = gate.status()
        with open(figures, "w") as file:  # on standard output Ray prints what it has to say
            print(status.seen, status.spent + status.warmup_spent, status.errors_found
                  + status.warmup_errors, file=file)
"""


@contextmanager
def killed_at_the_end(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


def test_the_driver_is_killed_and_goes_on(cluster: Cluster, tmp_path: Path) -> None:
    notes, figures = tmp_path / "notes", tmp_path / "figures"
    files = [str(notes), str(tmp_path / "a.db"), str(figures)]
    command = [sys.executable, "-c", DRIVER, cluster.address, *files]
    with killed_at_the_end(command) as first:
        while not notes.exists() or len(notes.read_text().splitlines()) < 20:
            assert first.poll() is None
            time.sleep(0.01)
    subprocess.run(command, stdout=subprocess.DEVNULL, timeout=PATIENCE, check=True)
    assert figures.read_text().split() == ["60", "60.0", "30"]
    tried = Counter(line.split()[0] for line in notes.read_text().splitlines())
    assert len(tried) == 60
    assert sum(tried.values()) < 60 + 20  # outputs with a logged verdict are not verified again


def run_command(folder: Path, log: str, *more: str) -> list[str]:
    """`gatekeeper run` on bundled tasks, with its log in the folder."""
    run = "import sys; from gatekeeper.cli import main; sys.exit(main())"
    tasks = [str(Path(gatekeeper.__file__).parent / "bundled" / "tasks.jsonl"), "--limit", "96"]
    gate = ["--sandbox", "local", "--budget", "0.5", "--log", str(folder / log), "--json"]
    return [sys.executable, "-c", run, "run", *tasks, *gate, *more]


def test_sigterm_ends_a_run_on_the_cluster_as_any_other(cluster: Cluster, tmp_path: Path) -> None:
    """Ray puts a handler of its own in place of a program's."""
    command = run_command(tmp_path, "a.db", "--engine", "ray", "--address", cluster.address)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while events(tmp_path / "a.db") < 50:
            assert process.poll() is None
            time.sleep(0.05)
        process.terminate()
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (143, b"")
    last = err.decode().splitlines()[-1]
    assert re.match(r"gatekeeper: interrupted by SIGTERM after \d+ of 96 outputs; the same", last)


def test_a_run_on_the_cluster_is_killed_and_goes_on(cluster: Cluster, tmp_path: Path) -> None:
    """It ends with the verdicts of a run in this process, generated on an actor or here."""
    command = partial(run_command, tmp_path)
    engine = ["--engine", "ray", "--address", cluster.address]
    on_ray = command("ray.db", *engine, "--generators", "1")
    with killed_at_the_end(on_ray) as first:
        while events(tmp_path / "ray.db") < 100:
            assert first.poll() is None
            time.sleep(0.05)
    for one in (on_ray, command("here.db")):
        subprocess.run(one, stdout=subprocess.DEVNULL, timeout=PATIENCE, check=True)
    verdicts = [
        {
            name: result.outcome and result.outcome.verdict
            for name, result in read_run(tmp_path / log).results.items()
        }
        for log in ("ray.db", "here.db")
    ]
    assert len(verdicts[0]) == 96
    assert verdicts[0] == verdicts[1]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # within Ray Data
def test_rows_of_ray_data(cluster: Cluster) -> None:
    rows = [{"id": f"{n}", "output": t} for n, t in enumerate(["right", "wrong", "right"])]
    data = ray.data.from_items(rows).map_batches(
        VerifyRows,
        fn_constructor_args=(partial(Notes, os.devnull),),
        fn_constructor_kwargs={"text": "output"},
        concurrency=1,
    )
    assert {r["id"]: r["verdict"] for r in data.take_all()} == {
        "0": "passed",
        "1": "failed",
        "2": "passed",
    }


def test_a_pool_that_cannot_start_names_the_reason(cluster: Cluster) -> None:
    with pytest.raises(GatekeeperError, match=r"Unavailable: no actor could be.*no engine here"):
        RayVerifier(Unavailable)
    with pytest.raises(BadInputError, match="batch=0"):
        RayVerifier(LocalSandbox, batch=0)
    with pytest.raises(BadInputError, match="1 GPUs each: the cluster has 0"):
        RayGenerator(bundled_generator)
    with pytest.raises(GeneratorUnavailableError, match="no engine here"):
        RayGenerator(Unavailable, gpus=0)
