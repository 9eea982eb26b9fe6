"""The pool of actors on a cluster, with a stand-in for Ray; `tests/harness/test_ray.py` has Ray."""

from __future__ import annotations

import pickle
import threading
import time
from concurrent.futures import Future, wait
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gatekeeper import Generation, Outcome, Verdict
from gatekeeper.errors import BadInputError, GeneratorUnavailableError
from gatekeeper.ray import RayGenerator, RayVerifier, VerifyRows


class Passes:
    def verify(self, generation: Generation, task: object) -> Outcome:
        return Outcome(Verdict.PASSED)


class Actor:
    """One that lives, or one that dies at its start."""

    def __init__(self, *, lives: bool) -> None:
        self._lives = lives
        self.about = SimpleNamespace(remote=self._about)
        self.verify_many = SimpleNamespace(remote=self._verify_many)

    def _about(self) -> Future[Any]:
        future: Future[Any] = Future()
        if self._lives:
            future.set_result(("node", None))
        else:
            future.set_exception(RuntimeError("it died"))
        return future

    def _verify_many(self, pairs: list[Any]) -> Future[Any]:
        pickle.dumps(pairs)
        future: Future[Any] = Future()
        future.set_result([Passes().verify(*pair) for pair in pairs])
        return future


class Cluster:
    """Ray's module: its first actor lives, every other dies at its start."""

    cloudpickle = pickle
    exceptions = SimpleNamespace(RayTaskError=ArithmeticError)  # which nothing here raises

    def __init__(self) -> None:
        self.started = 0

    def remote(self, cls: object) -> Any:
        return SimpleNamespace(options=lambda **given: SimpleNamespace(remote=self._start))

    def _start(self, make: object) -> Actor:
        self.started += 1
        return Actor(lives=self.started == 1)

    def wait(self, calls: list[Future[Any]], timeout: float) -> Any:
        return [list(found) for found in wait(calls, timeout)]

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 4.0}

    def get(self, call: Future[Any]) -> Any:
        return call.result()

    def kill(self, actor: Actor) -> None:
        pass


def test_a_free_actor_takes_an_output_while_another_slot_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whichever of the slots has waited longer."""
    monkeypatch.setattr("gatekeeper.ray.verifier.connected", lambda address: Cluster())
    monkeypatch.setattr("gatekeeper.ray.verifier.POLL", 3600.0)  # half a slot's pause
    with RayVerifier(Passes, actors=2) as pool:
        deadline = time.monotonic() + 60.0
        while not pool._failed:  # then the other slot is in its pause
            assert time.monotonic() < deadline
            time.sleep(0.01)
        for i in range(3):
            time.sleep(0.05)  # the free actor waits again
            future = pool._submit(Generation(str(i), "x"), {})
            assert future.result(20).verdict is Verdict.PASSED


def test_what_cannot_be_pickled_ends_alone_and_costs_no_actor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster()
    monkeypatch.setattr("gatekeeper.ray.verifier.connected", lambda address: cluster)
    tasks: list[Any] = [{"n": n} for n in range(8)]
    tasks[3]["own"] = threading.Lock()
    with RayVerifier(Passes, actors=1) as pool:
        found = pool.verify_batch([(Generation(str(n), "x"), t) for n, t in enumerate(tasks)])
        assert pool.nodes == {"node": 1}
    assert cluster.started == 1
    assert found[3].verdict is Verdict.INFRA_ERROR
    assert found[3].detail == (
        "Ray: task['own'] cannot be pickled: TypeError: cannot pickle '_thread.lock' object"
    )
    assert {o.verdict for n, o in enumerate(found) if n != 3} == {Verdict.PASSED}


class Holds(Passes):
    """A verifier, and a generator, that cannot be sent."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def __call__(self) -> Any:
        return self


@pytest.mark.parametrize("pool", [RayVerifier, partial(RayGenerator, gpus=0)])
def test_what_a_pool_cannot_do_is_refused(pool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("verifier", "generator"):
        monkeypatch.setattr(f"gatekeeper.ray.{module}.connected", lambda address: Cluster())
    with pytest.raises(BadInputError, match=r"Holds object.*: it cannot be pickled: Type"):
        pool(Holds())
    for setting, wrong in (("actors", 0), ("actors", -1), ("attempts", 0)):
        with pytest.raises(BadInputError, match=f"{setting}={wrong}: must be a whole number"):
            pool(Passes, **{setting: wrong})
    for cpus in (-1, float("nan"), float("inf")):
        with pytest.raises(BadInputError, match=f"cpus={cpus}: a finite number"):
            pool(Passes, cpus=cpus)
    with pytest.raises(BadInputError, match="cpus='1': a number is needed"):
        pool(Passes, cpus="1")
    with pytest.raises(BadInputError, match="make=3: give a"):
        pool(3)


def test_what_a_verifier_of_rows_cannot_be() -> None:
    with pytest.raises(BadInputError, match="make=None: give a verifier's name"):
        VerifyRows(None)  # type: ignore[arg-type]
    with pytest.raises(BadInputError, match="text=3: a string is needed"):
        VerifyRows(Passes, text=3)  # type: ignore[arg-type]
    with pytest.raises(BadInputError, match="name=3: a string is needed"):
        RayVerifier(Passes, name=3)  # type: ignore[arg-type]
    with pytest.raises(BadInputError, match="address=3: a string is needed"):
        RayVerifier(Passes, address=3)  # type: ignore[arg-type]


class LoadError(Exception):
    """What the stand-in raises for a call that failed in an actor that lives."""


class Models(Cluster):
    """Ray's module: the second actor cannot load its model, every other one can."""

    exceptions = SimpleNamespace(RayTaskError=LoadError, RayError=LoadError)

    def _start(self, make: object) -> Any:
        self.started += 1
        loading: Future[Any] = Future()
        if self.started == 2:
            loading.set_exception(LoadError("no memory"))
        else:
            loading.set_result(None)
        answers: Future[Any] = Future()
        answers.set_result(["answer"])
        return SimpleNamespace(
            load=SimpleNamespace(remote=lambda: loading),
            generate=SimpleNamespace(remote=lambda *given: answers),
        )


def test_an_actor_that_could_not_load_its_model_is_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A call that gets its place later starts another one."""
    monkeypatch.setattr("gatekeeper.ray.generator.connected", lambda address: Models())
    with RayGenerator(list, actors=2, gpus=0) as generate:
        with pytest.raises(GeneratorUnavailableError, match="no memory"):
            generate(["x"], ["a"])
        assert [generate(["x"], ["a"]) for _ in range(4)] == [["answer"]] * 4


def test_a_row_without_a_text_takes_no_other_with_it() -> None:
    rows = VerifyRows(lambda: lambda output, task: output.text == task["right"], text="output")
    texts = np.array(["a", None, "b", float("nan")], dtype=object)
    found = rows({"output": texts, "right": np.array(["a"] * 4)})
    assert list(found["verdict"]) == ["passed", "infra_error", "failed", "infra_error"]
    assert found["detail"][1] == "column 'output': text=None: a string is needed"
