"""Caps of groups under one budget: none is exceeded, and a full one blocks no other."""

from __future__ import annotations

import json
import random
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from ticks import ticks

from gatekeeper import BadInputError, Budget, Generation, Outcome, Reason, Verdict, VerificationGate
from gatekeeper.budget import Ledger
from gatekeeper.cli import main
from gatekeeper.errors import LogMismatchError
from gatekeeper.log.run import read_run
from gatekeeper.policies import policy_names
from gatekeeper.programs.group_caps import caps_given
from gatekeeper.report.sections.budget import account
from gatekeeper.testing import make_generation

TENANTS = {"tenant": {"a": 20, "b": 40}}


def verify(generation: Generation, task: Any) -> Outcome:
    rng = random.Random(generation.id)
    verdict = Verdict.FAILED if rng.random() < 0.4 else Verdict.PASSED
    return Outcome(verdict, cost=rng.uniform(0.0, 1.0), seconds=0.1)


def stream(n: int, tenants: str = "abc") -> list[tuple[Generation, dict[str, str]]]:
    rng = random.Random("stream")
    return [
        (make_generation(f"g{i}", seed=i, prompt_tokens=rng.randint(5, 200)), {"tenant": tenant})
        for i, tenant in enumerate(rng.choices(tenants, k=n))
    ]


class World:
    """A ledger with groups, and a plain count beside it."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.caps = {"tenant=a": rng.randint(0, 9), "tenant=b": rng.randint(0, 9), "day=": 12}
        groups = {"tenant": {"a": self.caps["tenant=a"], "b": self.caps["tenant=b"]}, "day": 12}
        more = rng.choice(({"total": 25}, {"fraction": 0.4}, {"fraction": 0.4, "total": 25}))
        self.ledger = Ledger(Budget(**more, unit="usd", max_cost=1.0, groups=groups), 1.0)
        self.groups: dict[str, dict[str, str]] = {}  # of each id
        self.held: list[str] = []
        self.released: list[str] = []
        self.spent: dict[str, float] = {}

    def room(self, groups: dict[str, str]) -> bool:
        """Whether each group with a cap has room for one more."""
        for name, group in groups.items():
            cap = self.caps["day="] if name == "day" else self.caps.get(f"{name}={group}")
            mine = [i for i in (*self.held, *self.spent) if self.groups[i][name] == group]
            used = sum(1.0 if i in self.held else self.spent[i] for i in mine)
            if cap is not None and cap - used < 1.0 - 1e-12:
                return False
        return True

    def step(self, number: int) -> None:
        rng, ledger = self.rng, self.ledger
        draw = rng.random()
        if draw < 0.5:
            id_, warmup = f"x{number}", rng.random() < 0.2
            groups = {"tenant": rng.choice("abc"), "day": rng.choice(("mo", "tu"))}
            self.groups[id_] = groups
            assert (ledger.group_room(ledger.groups.of(groups)) >= 0) == self.room(groups)
            hold = ledger.see(1.0, warmup=warmup, groups=groups)
            fits = self.room(groups) and ledger.left(warmup=warmup) >= 0
            assert ledger.reserve(id_, hold) == fits
            self.held += [id_] if fits else []
        elif draw < 0.6 and self.released:
            id_ = self.released[-1]
            if ledger.reserve_again(id_):
                self.held.append(self.released.pop())
        elif draw < 0.7 and self.held:
            id_ = self.held.pop(rng.randrange(len(self.held)))
            ledger.release(id_)
            self.released.append(id_)
        elif self.held:
            id_ = self.held.pop(rng.randrange(len(self.held)))
            self.spent[id_] = ledger.settle(id_, rng.choice((0.0, 0.25, 1.0, 7.0)))

    def check(self) -> None:
        for name, group in self.ledger.groups.status().items():
            assert group.spent + group.held <= group.cap
            of, _, value = name.partition("=")
            mine = [i for i in self.groups if self.groups[i][of] == value]
            assert group.held == sum(i in self.held for i in mine)
            assert group.spent == sum(self.spent.get(i, 0.0) for i in mine)


@pytest.mark.parametrize("seed", range(60))
def test_no_history_exceeds_a_group(seed: int) -> None:
    """Each group's account is exact at every moment, and refuses only where it has no room."""
    world = World(seed)
    for number in range(150):
        world.step(number)
        world.check()
        if number == 75:  # a snapshot is the same account
            state = json.loads(json.dumps(world.ledger.state()))
            world.ledger = Ledger(world.ledger.budget, 1.0)
            world.ledger.restore(state)


@pytest.mark.parametrize("policy", sorted(set(policy_names()) - {"oracle"}))
def test_a_full_group_blocks_no_other(policy: str) -> None:
    """Other groups get their share of the budget; outputs of the full ones have the reason."""
    pairs = stream(900)
    budget = Budget(fraction=0.3, horizon=len(pairs), groups=TENANTS)
    decisions: dict[str, list[Any]] = {"a": [], "b": [], "c": []}
    with VerificationGate(policy, budget=budget, verifier=verify, warmup=20) as gate:
        for generation, task in pairs:
            decisions[task["tenant"]].append(gate.maybe_verify(generation, task).decision)
            status = gate.status()
            assert all(g.spent + g.held <= g.cap for g in status.groups.values())
            assert status.spent + status.held <= status.cap
    groups = status.groups
    assert {name: (g.spent, g.cap) for name, g in groups.items()} == {
        "tenant=a": (20.0, 20.0),
        "tenant=b": (40.0, 40.0),
    }
    assert {"tenant=a", "tenant=b"} == set(groups)
    refused = [d for d in decisions["a"] if d.reason is Reason.GROUP_EXHAUSTED]
    assert refused
    assert {d.propensity for d in refused} == {0.0}
    others = decisions["c"]
    assert not any(d.reason is Reason.GROUP_EXHAUSTED for d in others)
    late = others[len(others) // 2 :]  # both are full
    assert sum(d.verify for d in late) > 0.15 * len(late)
    assert status.decisions[Reason.GROUP_EXHAUSTED] == sum(
        d.reason is Reason.GROUP_EXHAUSTED for each in decisions.values() for d in each
    )


def test_what_a_full_group_leaves_is_for_the_others() -> None:
    """`calibrated` paces the budget: a refusal by a group does not count as one by the budget."""
    pairs = stream(1200)

    def others(groups: Any) -> int:
        budget = Budget(fraction=0.3, horizon=len(pairs), groups=groups)
        with VerificationGate("calibrated", budget=budget, verifier=verify, warmup=20) as gate:
            return sum(gate.maybe_verify(*p).verified for p in pairs if p[1]["tenant"] == "c")

    with_full_groups, without = others(TENANTS), others({})
    assert with_full_groups >= without


def test_threads_never_exceed_a_group() -> None:
    budget = Budget(
        fraction=0.5, unit="usd", max_cost=1.0, groups={"tenant": {"a": 6, "b": 11, "c": 5.5}}
    )
    with (
        VerificationGate("random", budget=budget, verifier=verify, warmup=5) as gate,
        ThreadPoolExecutor(8) as pool,
    ):
        for _ in pool.map(lambda pair: gate.maybe_verify(*pair), stream(400)):
            groups = gate.status().groups.values()
            assert all(ticks(g.spent) + ticks(g.held) <= ticks(g.cap) for g in groups)
        assert all(g.cap - g.spent < 1.0 and not g.held for g in gate.status().groups.values())


def test_a_resume_keeps_the_accounts(tmp_path: Path) -> None:
    """Also of what was under way when the process was killed: it is charged once."""
    budget = Budget(fraction=0.5, groups={"tenant": {"a": 9}, "day": 14})
    given: dict[str, Any] = {"policy": "random", "budget": budget, "warmup": 4}
    pairs = [(g, t | {"day": "mo" if i < 40 else "tu"}) for i, (g, t) in enumerate(stream(80))]
    whole, log, killed = (tmp_path / name for name in ("whole.db", "run.db", "killed.db"))
    with VerificationGate(**given, verifier=None, log=whole) as gate:
        expected = [gate.maybe_verify(*pair).decision for pair in pairs]
    decisions = []
    with VerificationGate(**given, log=log) as gate:
        decisions += [gate.maybe_verify(*pair).decision for pair in pairs[:60]]
        before = gate.status()
        for suffix in ("", "-wal"):
            if (file := Path(f"{log}{suffix}")).exists():
                shutil.copy(file, f"{killed}{suffix}")
    with VerificationGate(**given, log=killed) as gate:
        assert gate.status() == before
        assert before.groups["day=mo"].held == 14
        decisions += [gate.maybe_verify(*pair).decision for pair in pairs[60:]]
        for output in gate.pending():
            gate.report_outcome(output.id, "passed")
        after = gate.status().groups
    assert repr(decisions) == repr(expected)  # NaN included
    assert {n: g.spent for n, g in after.items()} == {"tenant=a": 9, "day=mo": 14, "day=tu": 14}
    assert read_run(killed).ledger.groups.status() == after
    assert "day=mo" in account(read_run(killed).ledger)
    assert "14 of 14 verifications" in account(read_run(killed).ledger)
    with pytest.raises(LogMismatchError, match="groups"):
        VerificationGate(**given | {"budget": Budget(fraction=0.5)}, log=killed)


def test_a_released_output_waits_for_its_group() -> None:
    budget = Budget(fraction=1.0, groups={"tenant": 1})
    with VerificationGate("random", budget=budget, warmup=1) as gate:
        first, second = make_generation("x"), make_generation("y")
        assert gate.maybe_verify(first, {"tenant": "a"}).decision.verify
        gate.report_outcome("x", "infra_error")
        assert gate.maybe_verify(second, {"tenant": "a"}).decision.verify
        gate.report_outcome("y", "passed")
        with pytest.raises(BadInputError, match="no room"):
            gate.report_outcome("x", "passed")
        assert gate.maybe_verify(make_generation("z"), {"tenant": "b"}).decision.verify
        refused = gate.maybe_verify(make_generation("w"), {"tenant": "a"}, force=True)
        assert refused.decision.reason is Reason.GROUP_EXHAUSTED


def test_the_model_is_a_group() -> None:
    """An output names it, or else the gate's settings do."""
    budget = Budget(fraction=1.0, groups={"model": {"small": 2}})
    settings = {"model": "small"}
    with VerificationGate(
        "random", budget=budget, verifier=verify, warmup=1, settings=settings
    ) as gate:
        large = [Generation(f"l{i}", "text", model="large") for i in range(5)]
        small = [Generation(f"s{i}", "text") for i in range(5)]
        assert [gate.maybe_verify(g).verified for g in small] == [True, True, False, False, False]
        assert all(gate.maybe_verify(g).verified for g in large)


def test_a_score_says_which_outputs_it_cannot_stand_for() -> None:
    """A drawn and an undrawn output of a full group have the same propensity: none."""
    pairs = stream(300)
    budget = Budget(fraction=0.3, horizon=len(pairs), groups={"tenant": {"a": 5}})
    with VerificationGate(goal="score", budget=budget, verifier=verify) as gate:
        decisions = [
            gate.maybe_verify(*pair).decision for pair in pairs if pair[1]["tenant"] == "a"
        ]
    assert sum(d.verify for d in decisions) == 5
    last = max(i for i, d in enumerate(decisions) if d.verify)
    assert {d.propensity for d in decisions[last + 1 :]} == {0.0}


@pytest.mark.parametrize("task", [None, {}, {"tenant": None}, {"tenant": ""}, "a"])
def test_an_output_of_no_group_is_refused(task: object) -> None:
    """A cap that some outputs bypass would not be a cap."""
    budget = Budget(fraction=0.5, groups={"tenant": 1})
    with VerificationGate("random", budget=budget, warmup=1) as gate:
        with pytest.raises(BadInputError, match=r"id='x': the task's field 'tenant'"):
            gate.maybe_verify(Generation("x", "text"), task)
        assert gate.maybe_verify(Generation("x", "text"), {"tenant": 7}).decision.verify
        assert set(gate.status().groups) == {"tenant=7"}


@pytest.mark.parametrize(
    "groups",
    [
        [],
        {"tenant": -1},
        {"tenant": {"a": True}},
        {"": 1},
        {"a=b": 1},
        {"ten\0ant": 1},
        {"\ud800": 1},
        {"t" * 201: 1},
        {"day": {1: 2}},
    ],
)
def test_bad_caps(groups: Any) -> None:
    with pytest.raises(BadInputError, match="groups"):
        Budget(fraction=0.2, groups=groups)


def tasks_file(folder: Path) -> Path:
    path = folder / "tasks.jsonl"
    rows = [
        {
            "id": f"t{i}",
            "prompt": f"Compute {i + 20} + {i + 31}.",
            "kind": "math",
            "gold": "1",
            "tenant": "ab"[i % 2],
        }
        for i in range(40)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_the_command_takes_caps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tasks = str(tasks_file(tmp_path))
    given = ["--budget", "1", "--warmup", "2", "--budget-groups", "tenant=a:3", "--json"]
    assert main(["run", tasks, *given]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["groups"] == {"tenant=a": {"cap": 3.0, "spent": 3.0, "held": 0.0}}
    assert found["warmup_verified"] + found["verified"] == 3 + 20
    for bad in ("tenant", "tenant=x", "tenant=a:1,tenant=2", "tenant=a:1,tenant=a:2", "tenant=:3"):
        assert main(["run", tasks, "--budget-groups", bad]) == 2
        assert "--budget-groups tenant" in capsys.readouterr().err


def test_a_task_without_its_group_ends_the_command_before_the_first_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, log = tasks_file(tmp_path), tmp_path / "run.db"
    path.write_text(path.read_text().replace(', "tenant": "a"}', "}", 1))  # t0's
    given = ["run", str(path), "--budget-groups", "tenant=3", "--log", str(log)]
    for more in ([], ["--dry-run"]):
        assert main([*given, *more]) == 2
        assert "task 't0': the task's field 'tenant' is None" in capsys.readouterr().err
    assert not log.exists()


def test_spaces_around_the_parts_of_caps_are_no_names() -> None:
    assert caps_given(" tenant = a : 5, tenant=b:6, day=2 ,") == {
        "tenant": {"a": 5.0, "b": 6.0},
        "day": 2.0,
    }
