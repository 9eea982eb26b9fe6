"""A built-in policy is one file and one line of the registry: no other module has its name."""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import gatekeeper
from gatekeeper.analysis.experiment import Protocol, compare
from gatekeeper.cli import main
from gatekeeper.cli import replay as replay_command
from gatekeeper.errors import BadInputError
from gatekeeper.io.records import load_records
from gatekeeper.paper.stress import make_stream, stream_names
from gatekeeper.policies import (
    Oracle,
    PolicyDescriptor,
    Threshold,
    built_in,
    describe_policy,
    make_policy,
    policy_names,
    registry,
    replay_names,
)
from gatekeeper.report.report import report

ROOT = Path(gatekeeper.__file__).parent


class Twin(Threshold):
    """Decides as Threshold."""

    name = "twin"
    label = "Twin"
    description = "the same once more"


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "BUILT_IN", (*registry.BUILT_IN, Twin))


@pytest.mark.usefixtures("registered")
def test_one_line_registers_a_policy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(make_policy("twin", 0.2), Twin)
    assert "twin" in policy_names()
    assert replay_names()[-1] == "twin"
    table = make_stream(stream_names()[0], 300, 0)
    compared = compare(table, ["threshold", "twin"], [0.2], Protocol(seeds=2))
    np.testing.assert_array_equal(compared.values[0], compared.values[1])

    path = tmp_path / "records.jsonl"
    path.write_text(
        "".join(
            f'{{"id": "{i}", "h1": {h[0]}, "h2": {h[1]}, "h3": {h[2]}, "cost_estimate": {e}, '
            f'"cost": {c}, "error": {int(y)}}}\n'
            for i, (h, e, c, y) in enumerate(
                zip(
                    np.nan_to_num(table.h).tolist(),
                    table.cost_estimate.tolist(),
                    table.cost.tolist(),
                    table.error.tolist(),
                    strict=True,
                )
            )
        )
    )
    assert len(load_records(path)) == 300
    page = report(path)
    assert "Twin: the same once more" in page
    monkeypatch.setenv("COLUMNS", "200")
    command = ["replay", str(path), "--policy", "twin", "--beta", "0.2", "--seeds", "2"]
    assert main([*command, "--workers", "1"]) == 0
    assert "twin" in capsys.readouterr().out
    parser = argparse.ArgumentParser()
    replay_command.add(parser)
    with pytest.raises(SystemExit):
        parser.parse_args(["--help"])
    assert "twin" in capsys.readouterr().out


def test_attributes_of_every_built_in_policy() -> None:
    described = built_in()
    assert len({p.name for p in described}) == len(described) >= 10
    assert (
        len({p.label for p in described})
        == len({p.description for p in described})
        == len(described)
    )
    assert [p.name for p in described if p.replay_only] == [Oracle.name]
    assert {p.name for p in described if p.calibrates} == {"hga", "split-conformal"}
    assert {p.name for p in described if not p.learns_after_warmup} == {
        *("random", "threshold", "cst", "oracle")
    }
    for policy in described:
        assert policy == describe_policy(policy.name)


def test_a_bare_callable_has_defaults() -> None:
    described = PolicyDescriptor.of("mine", lambda beta, *, seed: Threshold(beta, seed=seed))
    assert (described.label, described.description) == ("mine", "")
    assert described.learns == "labels"
    assert (described.needs, described.options, described.calibrates) == ((), (), False)
    made = described.build(0.2, seed=1, stream={"warmup": 3, "horizon": 10})
    assert isinstance(made, Threshold)
    with pytest.raises(BadInputError, match=r"policy='mine' with \{'k': 2\}: 'k' .* options: none"):
        described.build(0.2, seed=1, stream={}, options={"k": 2})


def test_the_oracle_does_not_exist_live() -> None:
    assert Oracle.name not in policy_names()
    with pytest.raises(BadInputError, match=r"policy 'oracle' knows the labels .* replay only"):
        make_policy("oracle", 0.2)


# The paper's own columns are named by its policies.
DATA = {"paper/published.py"}


def spelled(tree: ast.AST, names: set[str]) -> Iterator[int]:
    """Lines that compare with a policy's name, or have several as keys of one dict."""

    def strings(node: ast.AST | None) -> list[str]:
        nodes = ast.walk(node) if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
        return [
            n.value
            for n in nodes
            if isinstance(n, ast.Constant) and isinstance(n.value, str) and n.value in names
        ]

    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            named = any(strings(part) for part in (node.left, *node.comparators))
        elif isinstance(node, ast.Dict):
            named = sum(len(strings(key)) for key in node.keys) > 1
        else:
            named = isinstance(node, ast.MatchValue) and bool(strings(node.value))
        if named:
            yield getattr(node, "lineno", 0)


def test_no_module_but_a_policys_own_spells_its_name() -> None:
    names = {policy.name for policy in built_in()}
    files = [f for f in ROOT.rglob("*.py") if f.parent.name != "policies"]
    assert len(files) > 50
    found = [
        f"{file.relative_to(ROOT)}:{line}"
        for file in files
        if str(file.relative_to(ROOT)) not in DATA
        for line in spelled(ast.parse(file.read_text()), names)
    ]
    assert not found, found
    example = 'if name == "cst": pass\nx = {"cst": 1, "hga": 2}\ny = n in ("hga", "other")'
    assert list(spelled(ast.parse(example), names)) == [1, 2, 3]
