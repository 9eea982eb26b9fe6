"""Models of any number, with names of any length: a server may repeat what its callers send."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gatekeeper import Budget, VerificationGate
from gatekeeper.drift.fingerprint import LISTED, LONGEST, MOST, Fingerprint
from gatekeeper.log.run import read_run
from gatekeeper.testing import make_generation

OUTPUTS = 300


def test_a_log_grows_with_the_outputs(tmp_path: Path) -> None:
    """It has all names with each new one: 300 of 4,000 characters would take half a gigabyte."""
    log = tmp_path / "run.db"

    def gate() -> VerificationGate:
        return VerificationGate(
            "random", budget=Budget(fraction=0.5), verifier=lambda output, task: True, log=log,
            warmup=10, explore=0.0,
        )  # fmt: skip

    with gate() as first:
        for i in range(OUTPUTS):
            output = make_generation(f"q{i}", seed=i)
            first.maybe_verify(replace(output, model=f"{i:03}" + "m" * 4000), None)
        status = first.status()
    texts = OUTPUTS * 4200  # of the outputs, each with its own model
    assert log.stat().st_size < 2 * texts + 2 * MOST * MOST * LONGEST
    with gate() as second:  # it decides as the first
        assert second.status().drift == status.drift
    assert (found := read_run(log).fingerprint) is not None
    assert [name[:3] for name in found.fingerprint.models] == [f"{i:03}" for i in range(MOST)]
    assert max(map(len, found.fingerprint.models)) == LONGEST


def test_few_are_listed() -> None:
    before = Fingerprint().with_models(f"m{i}" for i in range(LISTED + 2))
    names = " or ".join(f"'m{i}'" for i in range(LISTED))
    said = before.with_models(["new"]).since(before)
    assert said == f"model 'new' instead of {names} or 2 others"


def test_names_of_an_earlier_log_stay() -> None:
    earlier = Fingerprint(models=tuple(f"m{i}" for i in range(MOST + 5)))
    assert earlier.knows("new")
    assert earlier.with_models(["new"]) == earlier
    assert Fingerprint(models=("m1",)).after(earlier).models == earlier.models
