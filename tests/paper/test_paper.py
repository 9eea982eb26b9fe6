"""The paper's tables: its figures as data, the calibrated streams, and how close ours are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from gatekeeper.cli import main
from gatekeeper.errors import BadInputError
from gatekeeper.paper import TABLES, Replays, closing, published
from gatekeeper.paper.settings import PARAMETERS, SETTINGS, STRATA, setting
from gatekeeper.paper.streams import draw, homogeneous, synthetic_signal, with_benefit
from gatekeeper.paper.table import Cell, PaperTable
from gatekeeper.stats.interval import Interval

MBPP = published.SETTINGS[:3]
HALF, HALF_BETAS = ("threshold", "cst", "hga"), (0.2, 0.3, 0.5)
AIM = 0.03  # hit rates of Random, Threshold, CST and HGA on MBPP from β = 20 % on


@pytest.fixture(scope="module")
def replays() -> Iterator[Replays]:
    with Replays(10) as replays:
        yield replays


# -- the published figures -------------------------------------------------------------------------


def test_the_published_tables_are_consistent() -> None:
    for name in published.SETTINGS:
        assert tuple(published.HIT_RATE[name]) == published.BETAS
        for i, beta in enumerate(published.MAIN_BETAS):
            row = published.HIT_RATE[name][beta]
            gain = published.MAIN_GAIN[name][beta]
            assert 100 * (row["cst"] - row["threshold"]) == pytest.approx(gain.value, abs=0.11)
            assert gain.low < gain.value < gain.high
            assert published.MAIN_ORACLE[name][i] == pytest.approx(row["oracle"], abs=0.0051)
            conformal = published.CONFORMAL[name][beta]
            assert 0.2 < conformal["hit"] < 0.9
            half = published.HGA[name][beta]
            low, high = sorted((half["threshold"], half["cst"]))
            assert low <= half["hga"] <= high
    facts = published.FACTS["mbpp-qwen3"]
    assert facts.strata_error_rate == published.STRATA["error rate"]
    assert np.mean(published.STRATA["error rate"]) == pytest.approx(facts.error_rate, abs=0.005)


# -- the streams -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "seed"), list(product(published.SETTINGS, (0, 1, 7))))
def test_a_stream_has_the_figures_of_its_setting(name: str, seed: int) -> None:
    model, facts = SETTINGS[name], published.FACTS[name]
    table = draw(model, seed)
    y, h = table.error, table.h
    assert len(table) == facts.n
    assert y.mean() == pytest.approx(facts.error_rate, abs=0.005)
    assert (np.diff(table.cost_estimate) > 0).all()
    assert np.corrcoef(table.cost_estimate, table.cost)[0, 1] == pytest.approx(0.3, abs=0.05)
    s = ((h - h.mean(axis=0)) / h.std(axis=0)).mean(axis=1)
    assert np.corrcoef(s, y)[0, 1] == pytest.approx(facts.rho, abs=0.02)
    parts = list(zip(np.array_split(s, STRATA), np.array_split(y, STRATA), strict=True))
    rho = [np.corrcoef(a, b)[0, 1] for a, b in parts]
    assert rho == pytest.approx(model.rho, abs=1e-3)
    if facts.dispersion is not None:
        assert np.var(rho) == pytest.approx(facts.dispersion, abs=1e-4)
    for ours, paper in zip(rho, facts.strata_rho or (None,) * STRATA, strict=True):
        assert paper is None or ours == pytest.approx(paper, abs=1e-3)
    if facts.strata_error_rate is not None:
        rates = [b.mean() for _, b in parts]
        assert rates == pytest.approx(facts.strata_error_rate, abs=1 / len(parts[0][1]))
    if facts.cost_error is not None:
        assert np.corrcoef(table.cost, y)[0, 1] == pytest.approx(facts.cost_error, abs=0.03)
    assert (h[:, 0] >= 0).all()
    assert (h[:, 1] <= 0).all()
    assert ((h[:, 2] > 0) & (h[:, 2] <= 1)).all()


def test_a_seed_gives_one_stream_and_another_seed_another() -> None:
    model = SETTINGS["mbpp-llama3"]
    first, again, other = draw(model, 3), draw(model, 3), draw(model, 4)
    assert np.array_equal(first.h, again.h)
    assert not np.array_equal(first.h, other.h)
    assert first.ids == other.ids


@pytest.mark.parametrize("rho", [0.0, 0.178, 0.5])
def test_a_synthetic_signal_has_its_strength_in_every_stratum(rho: float) -> None:
    table = synthetic_signal(draw(SETTINGS["math-llama3"], 0), rho)
    assert np.isnan(table.h[:, 1:]).all()
    for h, y in zip(
        np.array_split(table.h[:, 0], STRATA), np.array_split(table.error, STRATA), strict=True
    ):
        assert np.corrcoef(h, y)[0, 1] == pytest.approx(rho, abs=0.06)


@pytest.mark.parametrize("name", list(published.ROUTING))
def test_routing_labels_are_errors_of_the_cheap_model(name: str) -> None:
    table, rate = draw(SETTINGS[name], 0), published.ROUTING[name].benefit_rate
    routed = with_benefit(table, rate)
    assert routed.benefit is not None
    assert routed.benefit.mean() == pytest.approx(rate, abs=1 / len(table))
    assert (routed.benefit <= table.error).all()


def test_every_parameter_has_a_reason() -> None:
    for parameter in PARAMETERS:
        assert len(parameter.values) == len(published.SETTINGS)
        assert len(parameter.reason) > 10, parameter.name
    with pytest.raises(BadInputError, match="setting='mbpp' is unknown: choose one of mbpp-qwen3"):
        setting("mbpp")


# -- the replays -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MBPP)
def test_random_threshold_cst_and_hga_come_within_three_hundredths(
    replays: Replays, name: str
) -> None:
    betas = tuple(b for b in published.BETAS if b >= 0.2)
    policies = ("random", "threshold", "cst")
    grid = replays.grid(name, policies, betas)
    half = replays.grid(name, HALF, HALF_BETAS, evaluate="second-half")
    for policy, beta in product(policies, betas):
        assert grid.mean(policy, beta) == pytest.approx(
            published.HIT_RATE[name][beta][policy], abs=AIM
        ), (policy, beta)
    for beta, row in published.HGA[name].items():
        for policy, figure in row.items():
            if beta in HALF_BETAS:
                assert half.mean(policy, beta) == pytest.approx(figure, abs=AIM), (policy, beta)


def test_cst_gains_where_the_paper_says_that_it_does(replays: Replays) -> None:
    for name in MBPP:
        grid = replays.grid(name, ("random", "threshold", "cst"), (0.2,))
        gain = grid.gain("cst", "threshold", 0.2)
        assert 0 < gain.low < gain.high
    half = replays.grid("math-qwen3", HALF, (0.2,), evaluate="second-half")
    gain = half.gain("cst", "threshold", 0.2)
    assert gain.low < gain.high < 0
    opened = replays.grid("mbpp-llama3", HALF, HALF_BETAS, evaluate="second-half")
    assert half.gate_open(0.2) < 0.5 < opened.gate_open(0.2)


def test_equal_costs_make_cst_threshold(replays: Replays) -> None:
    grid = replays.grid("mbpp-qwen3", ("threshold", "cst"), (0.1, 0.3), change=homogeneous)
    for beta in (0.1, 0.3):
        hits = [grid.hit_rate(policy, beta) for policy in ("threshold", "cst")]
        assert np.array_equal(*hits, equal_nan=True)


# -- tables and the command ------------------------------------------------------------------------


def test_a_cell_shows_ours_the_papers_and_the_difference() -> None:
    assert str(Cell(0.612, 0.610)) == ".612 (.610, +.002)"
    assert str(Cell(1.0, 0.997)) == "1.000 (.997, +.003)"
    assert str(Cell(float("nan"), 0.5)) == "– (.500, –)"
    assert (
        str(Cell(5.13, 5.1, "gain", Interval(5.13, 3.0, 7.0), Interval(5.1, 3.6, 6.6)))
        == "+5.1 [+3.0, +7.0] (+5.1 [+3.6, +6.6])"
    )
    assert str(Cell(0.8, 1.0, "open")) == "open 80% (open)"


def test_what_no_replay_defines_is_a_dash_and_null() -> None:
    nan = float("nan")
    nothing = Cell(nan, 5.1, "gain", Interval(nan, nan, nan), Interval(5.1, 3.6, 6.6))
    assert str(nothing) == "– (+5.1 [+3.6, +6.6])"
    assert str(Cell(nan, 1.0, "open")) == "– (open)"
    table = PaperTable("main", "", ("β",), ("cst − threshold",))
    table.add(("5%",), {"cst − threshold": nothing})
    json.dumps(table.json(), allow_nan=False)


def test_the_closing_words_follow_the_figures() -> None:
    table = PaperTable("budgets", "", ("setting", "β"), ("cst", "mp-adapt"))
    table.add(("mbpp-qwen3", "20%"), {"cst": Cell(0.66, 0.661), "mp-adapt": Cell(0.5, 0.6)})
    said = "\n".join(closing([table]))
    assert "1 of 2 rates that the paper prints are met within 0.03" in said
    assert "on MBPP from β = 20 % on: 1 of 1 within 0.03" in said
    assert "mp-adapt is off by more than 0.03 on average (mbpp-qwen3 −0.100)" in said
    assert "cst is off" not in said


def test_the_command_prints_and_writes(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:  # type: ignore[no-untyped-def]
    arguments = ["paper", "--table", "homogeneous", "--seeds", "2"]
    assert main([*arguments, "--table", "routing", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [t["name"] for t in document["tables"]] == ["homogeneous", "routing"]
    row = document["tables"][0]["rows"][0]
    assert row["β"] == "5%"
    assert row["cst"] == row["threshold"]
    assert row["cst"]["paper"] == 0.680
    assert main(arguments) == 0
    assert "CST equals Threshold in every replay" in " ".join(capsys.readouterr().out.split())


def test_the_command_refuses_what_it_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["paper", "--table", "nothing"]) == 2
    assert "choose one of parameters" in capsys.readouterr().err
    assert main(["paper", "--seeds", "1"]) == 2
    assert "--seeds '1': give a whole number from 2 to" in capsys.readouterr().err
    assert len(TABLES) == 16
