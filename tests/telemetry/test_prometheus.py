"""A gate's figures in a registry of the user's own, in the gateway, and on the dashboard."""

from __future__ import annotations

import json
import re
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from running_gateway import running_gateway
from scripted_upstream import ScriptedUpstream, completion, reply

from gatekeeper import Budget, VerificationGate
from gatekeeper.analysis.estimates import estimate
from gatekeeper.io.records import records_of_log
from gatekeeper.telemetry.error_rate import LoggedErrorRate
from gatekeeper.telemetry.prometheus import GateCollector
from gatekeeper.testing import ScriptedVerifier, make_generation

PATIENCE = 60.0
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples(text: str) -> Samples:
    """By name and labels."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def figure(found: Samples, name: str, **labels: str) -> float:
    return found[f"gatekeeper_{name}", frozenset(labels.items())]


def open_gate(log: Path) -> VerificationGate:
    labels = {f"g{i}": [0, 0, 0, 1, None][i % 5] for i in range(400)}
    return VerificationGate(
        "cst",
        budget=Budget(fraction=0.3),
        verifier=ScriptedVerifier(labels),
        log=log,
        on_unavailable="pass",
    )


def test_the_figures_are_those_of_the_status_and_survive_a_restart(tmp_path: Path) -> None:
    log = tmp_path / "gate.db"
    read: list[Samples] = []
    for start in (0, 200):
        with open_gate(log) as gate:
            registry, rate = CollectorRegistry(), LoggedErrorRate(log, every=0.0)
            registry.register(GateCollector(gate, error_rate=rate))
            with pytest.raises(ValueError, match="Duplicated"):
                registry.register(GateCollector(gate))
            for i in range(start, start + 200):
                gate.maybe_verify(make_generation(f"g{i}", seed=i))
            deadline = time.monotonic() + PATIENCE
            while True:  # an estimate is begun by a look at the figures, and there at a later one
                found = samples(generate_latest(registry).decode())
                wanted = estimate(records_of_log(log)).assisted
                assert wanted is not None
                if (
                    found.get(("gatekeeper_error_rate", frozenset({("bound", "low")})))
                    == wanted.low
                ):
                    break
                assert time.monotonic() < deadline
                time.sleep(0.05)
            status = gate.status()
        read.append(found)
        for reason, count in status.decisions.items():
            assert figure(found, "decisions_total", policy="cst", reason=reason) == count
        for verdict, count in status.verdicts.items():
            assert figure(found, "outcomes_total", verdict=verdict) == count
        unit = {"unit": "verifications"}
        assert figure(found, "budget_spent", account="main", **unit) == status.spent
        assert figure(found, "budget_spent", account="warmup", **unit) == status.warmup_spent
        assert figure(found, "budget_cap", account="main", **unit) == status.cap
        assert figure(found, "budget_overrun", account="main", **unit) == status.overrun == 0
        assert sum(figure(found, "health", state=s) for s in ("cold", "valid", "drifted")) == 1
        assert figure(found, "health", state=status.health) == 1
        assert figure(found, "error_rate", bound="estimate") == wanted.value
        verdicts = status.verified + status.warmup_verified
        assert sum(status.decisions.values()) == status.seen == start + 200
        assert sum(status.verdicts.values()) == verdicts + status.unresolved
    first, second = read
    for name in ("decisions_total", "outcomes_total"):
        ours = [key for key in first if key[0] == f"gatekeeper_{name}"]
        assert all(second[key] >= first[key] for key in ours)
        assert sum(second[key] for key in ours) > sum(first[key] for key in ours) > 0
    durations = "verification_seconds"  # of the second process alone
    count = figure(second, f"{durations}_count")
    assert count == figure(second, f"{durations}_bucket", le="+Inf")
    assert 0 < count < verdicts
    assert figure(second, f"{durations}_sum") > 0


def test_a_figure_that_cannot_be_had_is_absent(tmp_path: Path) -> None:
    """A log that cannot be read costs no other figure."""
    (tmp_path / "no.db").write_text("no log")
    with open_gate(tmp_path / "gate.db") as gate:
        rate = LoggedErrorRate(tmp_path / "no.db", every=0.0)
        registry = CollectorRegistry()
        registry.register(GateCollector(gate, error_rate=rate))
        for _ in range(3):
            found = samples(generate_latest(registry).decode())
            assert figure(found, "verifying") == 0
            assert not [name for name, _ in found if "error_rate" in name]


def test_the_dashboard_asks_for_figures_that_the_gateway_has(tmp_path: Path) -> None:
    """Every name and every label of every query; and every figure is on the dashboard."""
    board: Any = json.loads((Path(__file__).parents[2] / "docs" / "grafana.json").read_text())
    queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    queries.append(board["templating"]["list"][1]["query"]["query"])
    legends = [target["legendFormat"] for panel in board["panels"] for target in panel["targets"]]

    def answer(request: Any) -> Any:
        return [reply(json.dumps(completion("7")).encode())]

    log = tmp_path / "gate.db"
    with (
        ScriptedUpstream(answer) as upstream,
        running_gateway(
            upstream.url, gate={"log": log}, error_rate=LoggedErrorRate(log, every=0.0)
        ) as gateway,
        OpenAI(base_url=f"{gateway.url}/v1", api_key="k") as client,
    ):
        for own in (
            {"task": {"kind": "math", "gold": "7"}, "wait": "verdict"},
            {"verify": "never"},
        ):
            client.chat.completions.create(
                model="m",
                messages=[{"role": "user", "content": "q"}],
                extra_body={"gatekeeper": own},
            )
        deadline = time.monotonic() + PATIENCE
        while True:
            with urllib.request.urlopen(f"{gateway.url}/gatekeeper/metrics") as page:
                found = samples(page.read().decode())
            if any(name == "gatekeeper_error_rate" for name, _ in found):
                break
            assert time.monotonic() < deadline
            time.sleep(0.05)
    labels: dict[str, set[str]] = {}
    for name, pairs in found:
        labels.setdefault(name, set()).update(key for key, _ in pairs)
    known = {label for of_one in labels.values() for label in of_one} | {"job"}
    asked = set()
    for query in queries:
        names = re.findall(r"\bgatekeeper_\w+", query)
        assert names, query
        assert query.count("(") == query.count(")")
        asked.update(names)
        for name in names:
            assert name in labels, query
        own = {label for name in names for label in labels[name]} | {"job"}
        used = set(re.findall(r"(\w+)(?:=~|!~|!=|=)", query))
        for group in re.findall(r"by \(([^)]*)\)", query):
            used.update(group.split(", "))
        assert used <= own, query
    assert set(re.findall(r"{{(\w+)}}", "".join(legends))) <= known
    parts = ("_sum", "_count", "_created")
    assert {name for name in labels if not name.endswith(parts)} <= asked
    page_text = (Path(__file__).parents[2] / "docs" / "telemetry.md").read_text()
    assert not {name for name in asked if name.removesuffix("_bucket") not in page_text}
