"""The page: complete, self-contained, explicit about unknown figures, and safe to open."""

import hashlib
import json
import os
import re
import sqlite3
import sys
from collections import Counter
from datetime import UTC, datetime
from html.parser import HTMLParser
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gatekeeper import Budget, Generation, Outcome, Verdict, VerificationGate
from gatekeeper.analysis.estimates import estimate
from gatekeeper.analysis.experiment import Comparison, compare
from gatekeeper.analysis.score import estimate_score, score_rows
from gatekeeper.analysis.summary import summarise, summary_of
from gatekeeper.cli import main
from gatekeeper.errors import MissingDependencyError
from gatekeeper.io import jsonl
from gatekeeper.io.records import load_records
from gatekeeper.log import SQLiteLog
from gatekeeper.log.run import read_run
from gatekeeper.policies import built_in
from gatekeeper.report import data as report_data
from gatekeeper.report.data import read_data
from gatekeeper.report.report import report
from gatekeeper.report.sections.in_short import run_headline
from gatekeeper.testing import ScriptedVerifier, make_generation

HOSTILE = "<script src='http://evil.example/x.js'>alert(1)</script>\"&$\x00"
VOID = {"meta", "br"}


class Page(HTMLParser):
    """Reads a page as strictly as it was written: what is opened is closed, in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def records(n: int, *, seed: int = 0, **change: object) -> list[dict[str, object]]:
    rng = np.random.default_rng(seed)
    made = []
    for i in range(n):
        y = int(rng.random() < 0.4)
        h = rng.normal(size=3) + y
        cost = float(rng.lognormal(3, 0.4))
        made.append(
            {"id": f"r{i}", "h1": h[0], "h2": h[1], "h3": h[2]}
            | {"cost_estimate": cost, "cost": cost, "error": y}
            | change
        )
    return made


def write(path: Path, lines: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def run_log(path: Path, n: int, *, broken: int = 0, settings: object = None) -> VerificationGate:
    """A finished run of a gate whose verifier cannot tell about the last `broken` outputs."""
    labels: dict[str, int | None] = {f"o{i}": int(i % 3 == 0) for i in range(n)}
    labels |= {f"o{i}": None for i in range(n - broken, n)}
    gate = VerificationGate(
        "cst",
        budget=Budget(fraction=0.3, horizon=n),
        verifier=ScriptedVerifier(labels),  # type: ignore[arg-type]
        log=path,
        on_unavailable="pass",
        settings={"note": settings},
    )
    with gate:
        for i in range(n):
            output = make_generation(f"o{i}", seed=i, tokens=1 + i % 17, prompt_tokens=20 + i % 60)
            gate.maybe_verify(output, force=i >= n - broken)
    return gate


def check(text: str, *, drawings: int) -> Page:
    page = Page(text)
    names = [tag for tag, _ in page.tags]
    assert names.count("svg") == names.count("figure") == drawings
    assert not {"script", "link", "img", "iframe", "object", "base", "form"} & set(names)
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    for tag, attrs in page.tags:
        for name, value in attrs.items():
            assert not name.startswith("on"), (tag, name)
            if name in ("src", "href", "xlink:href", "style", "srcset", "data", "action"):
                assert "//" not in (value or ""), (tag, name, value)
            if name in ("href", "xlink:href"):
                assert (value or "").removeprefix("#") in ids
    assert "@import" not in text
    assert "nan" not in page.text.lower().split()
    return page


@pytest.fixture(scope="module")
def some_records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("report") / "records.jsonl", records(200))


@pytest.fixture(scope="module")
def of_records(some_records: Path) -> str:
    """The page at the usual budget of 20 %."""
    return report(some_records)


@pytest.fixture(scope="module")
def replayed(some_records: Path) -> Comparison:
    return compare(load_records(some_records), [policy.name for policy in built_in()], [0.2])


def test_the_page_of_records(some_records: Path, of_records: str) -> None:
    path, text = some_records, of_records
    page = check(text, drawings=4)
    wrong = sum(int(str(r["error"])) for r in records(200))
    assert (
        f"200 records, 200 with a known label; {wrong / 200:.1%} of these are wrong." in page.text
    )
    assert "CST: one threshold per cost stratum" in page.text
    assert "best possible selection: all labels known" in page.text
    assert "that learn from every label are left out" not in page.text
    assert report(path) == text
    assert "at a budget of 20%" in page.text
    assert "at a budget of 35%" in check(report(path, beta=0.35), drawings=4).text


def test_policies_are_those_of_replay(of_records: str, replayed: Comparison) -> None:
    """The table has every policy, with the figures that `gatekeeper replay` prints."""
    page = check(of_records, drawings=4)
    for policy in built_in():
        name = policy.name
        hit, gain = (
            replayed.estimate(name, 0.2, "hit_rate"),
            replayed.difference(name, "threshold", 0.2, "hit_rate"),
        )
        shown = f"{policy.label}: {policy.description} {hit.value:.1%}"
        assert f"{shown} ± {100 * hit.margin:.1f}" in page.text or hit.margin < 0.0005
        assert shown in page.text
        if name != "threshold":
            difference = f"{100 * gain.value:+.1f} ± {100 * gain.margin:.1f}".replace("-", "−")
            assert difference in page.text


def test_many_records_leave_learners_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_data, "MANY", 299)
    text = report(write(tmp_path / "records.jsonl", records(300)))
    page = check(text, drawings=4)
    assert "policies that learn from every label are left out" in page.text
    assert "3 random orders, by the paper's protocol" in page.text
    assert "MP-Adapt" not in page.text


def test_the_page_of_a_run(tmp_path: Path) -> None:
    """Its figures are the gate's own; an output that the verifier could not judge is not wrong."""
    gate = run_log(tmp_path / "run.db", 200, broken=7)
    status = gate.status()
    assert status.unresolved == 7
    page = check(report(tmp_path / "run.db"), drawings=4)
    shown = page.text
    assert f"200 outputs were seen. {status.warmup_verified} were verified" in shown
    assert f"the gate verified {status.verified}, and {status.errors_found} were wrong" in shown
    assert f"spent after the warm-up {status.spent:g} verifications" in shown
    assert f"allowed so far {status.cap:g} verifications" in shown
    assert f"spent on the warm-up {status.warmup_spent:g} verifications" in shown
    assert "Selected outputs without a verdict: 7." in shown
    assert "no verdict: the verifier failed; not counted as wrong 7 0" in shown
    assert "forced: requested by the caller 7 7 0 0" in shown
    assert "policy CST" in shown
    assert "at a budget of 30%" in shown
    assert "only outputs that were selected for verification have a label" in shown
    assert "Not every output was verified" in shown
    assert re.search(r"Cannot be computed: \d+ of 200 records have no label", shown)


def test_the_headline_of_a_run(tmp_path: Path) -> None:
    """Errors found, expected at random, the ratio, and the checks that random would need."""
    n, path = 200, tmp_path / "run.db"
    gate = run_log(path, n)
    verified, found = gate.status().verified, gate.status().errors_found
    page = check(report(path), drawings=4)
    random = verified * gate.status().warmup_errors / gate.status().warmup_verified
    shown = f"{random:.1f}" if random < 10 else f"{random:.0f}"
    assert f"wrong outputs found {found} at random, estimated {shown}" in page.text
    assert f"as many for the same cost {found / random:.1f} ×" in page.text
    assert f"{verified} checks after the warm-up" in page.text
    last = "In plain words: the gate found no more errors than chance explains."
    assert last in page.text
    assert "This difference is not statistically significant." in page.text
    if found > random:
        assert f"would take {found / random * verified:,.0f} checks" in page.text


def test_at_random_no_more_checks_than_outputs() -> None:
    """One error in a warm-up of 100, and 40 in the next 40 checks of 200."""
    number = np.arange(300)
    warmup, selected = number < 100, (number < 100) | (number % 5 == 0)
    summary = summary_of(
        warmup=warmup,
        selected=selected,
        labelled=selected,
        wrong=(number == 0) | (selected & ~warmup),
        budget_exhausted=0,
        missing_signal=0,
    )
    (headline,), _ = run_headline(summary)
    assert "40 checks after the warm-up. The same at random would take 200 checks." in headline


def test_the_headline_of_records(of_records: str, replayed: Comparison) -> None:
    page = check(of_records, drawings=4)
    ours, random = (replayed.estimate(p, 0.2, "recall").value for p in ("calibrated", "random"))
    assert f"found by Calibrated {ours:.0%} at random {random:.0%}" in page.text
    assert f"as many for the same cost {ours / random:.1f} ×" in page.text
    assert "In plain words: with 20% of the cost of checking everything" in page.text


def test_the_page_of_a_run_for_the_score(tmp_path: Path) -> None:
    """Its headline is the score; the advice on finding errors is for another run."""
    labels = {f"o{i}": int(i % 3 == 0) for i in range(120)}
    with VerificationGate(
        budget=Budget(fraction=0.25, horizon=120),
        verifier=ScriptedVerifier(labels),
        log=tmp_path / "run.db",
        goal="score",
    ) as gate:
        for i in range(120):
            gate.maybe_verify(make_generation(f"o{i}", seed=i))
    score = estimate_score(read_run(tmp_path / "run.db").results.values())
    page = check(report(tmp_path / "run.db"), drawings=4)
    (_, value, ends), *_ = score_rows(score)
    assert f"mean score of all outputs {value} 95 % interval {ends}" in page.text
    assert f"From {score.checks} of 120 outputs" in page.text
    assert "policy: drawn with a known probability, for the score" in page.text
    assert re.search(r"120 outputs were seen\. \d+ were drawn, each with a known", page.text)
    start = page.text.index("outputs wrong share wrong")  # of the table of the budget
    table = page.text[start : page.text.index("Cumulative counts", start)]
    assert "warm-up" not in table
    assert "at random" not in table
    assert "In plain words" not in page.text
    assert page.text.index("This run was for the score") < page.text.index("Use ")


@pytest.mark.parametrize(
    ("budget", "beta"),
    [
        (Budget(fraction=0.5, total=60), 0.1),
        (Budget(fraction=0.05, total=60), 0.05),
        (Budget(fraction=1.0, total=60), 0.1),
        (Budget(fraction=1.0), 0.2),
        (Budget(total=90, horizon=450), 0.1),  # the run is not at its end
        (Budget(fraction=0.3, total=9, unit="seconds", max_cost=1.0), 0.3),
    ],
)
def test_the_budget_of_a_log_is_the_smaller_one(
    tmp_path: Path, budget: Budget, beta: float
) -> None:
    with VerificationGate(
        "random", budget=budget, verifier=ScriptedVerifier({}), log=tmp_path / "run.db"
    ) as gate:
        for i in range(150):
            gate.maybe_verify(Generation(f"o{i}", ""))
    data = read_data(
        tmp_path / "run.db", beta=None, skip_bad=False, on_bad=lambda error: None, command=""
    )
    assert data.beta == pytest.approx(beta)


def test_what_went_wrong_stands_at_the_top(tmp_path: Path) -> None:
    with VerificationGate(
        "cst",
        budget=Budget(fraction=0.3, horizon=120),
        verifier=lambda generation, task: None,
        log=tmp_path / "run.db",
        on_unavailable="pass",
    ) as gate:
        for i in range(160):
            gate.maybe_verify(Generation(f"o{i}", "text"))
        notes = gate.status().notes
    page = check(report(tmp_path / "run.db"), drawings=1)
    assert len(notes) == 3
    for note in notes:
        assert note in page.text
    assert "This was a random draw, because none of the 10 outputs" in page.text


def test_wrong_outputs_can_be_opened(tmp_path: Path) -> None:
    """Each with its text, as text, and what the verifier said."""

    def verify(generation: Generation, task: object) -> Outcome:
        wrong = int(generation.id[1:]) % 3 == 0
        return Outcome(Verdict.FAILED if wrong else Verdict.PASSED, detail=f"<b>{generation.id}")

    with VerificationGate(
        "cst", budget=Budget(fraction=0.3), verifier=verify, log=tmp_path / "run.db"
    ) as gate:
        for i in range(60):
            gate.maybe_verify(make_generation(f"o{i}", seed=i, text=f"{HOSTILE} of {i}"))
    text = report(tmp_path / "run.db")
    page = check(text, drawings=2)
    wrong = [row for row in read_run(tmp_path / "run.db").rows() if row["error"] == 1]
    assert 10 < len(wrong) <= 50
    assert text.count('<details class="failure">') == len(wrong)
    for row in wrong:
        assert f"{row['id']}: <b>{row['id']}" in page.text
        assert f"of {row['id'][1:]} verdict failed detail <b>{row['id']}" in page.text
    assert "gatekeeper show run.db --wrong" in page.text


def test_the_page_can_be_found_again(tmp_path: Path) -> None:
    """A list of contents; at the foot version, command, hash and date."""
    path = write(tmp_path / "my records.jsonl", records(80))
    made = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    text = report(path, beta=0.3, made=made)
    page = check(text, drawings=4)
    links = re.findall(r'<a href="#([^"]+)">', text)
    assert links == re.findall(r'<section id="([^"]+)">', text)
    assert len(links) == 6
    assert f"made by gatekeeper {version('llm-gatekeeper')}" in page.text
    assert "made with gatekeeper.report.report.report('my records.jsonl', beta=0.3)" in page.text
    assert hashlib.sha256(path.read_bytes()).hexdigest() in page.text
    assert "made on 2026-01-02 03:04 UTC" in page.text


def test_every_figure_has_its_values(tmp_path: Path) -> None:
    """On hover, and in a table for readers without a pointer."""
    run_log(tmp_path / "run.db", 200)
    text = report(tmp_path / "run.db")
    for drawing in re.findall(r"<figure>.*?</figure>", text, re.DOTALL):
        assert drawing.count("<g><title>") >= 3
        assert "Values of this figure" in drawing or "The table above has the values" in drawing
    cells = re.findall(r"<td[^>]*>", text)
    assert all("data-label=" in cell for cell in cells)


def test_the_input_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = write(tmp_path / "records.jsonl", records(60))
    run_log(tmp_path / "run.db", 60)
    calls: Counter[str] = Counter()

    def count(owner: Any, name: str) -> None:
        function = getattr(owner, name)

        def counted(*args: Any, **kwargs: Any) -> Any:
            calls[name] += 1
            return function(*args, **kwargs)

        monkeypatch.setattr(owner, name, counted)

    count(jsonl, "_open")
    count(sqlite3, "connect")
    count(SQLiteLog, "stored")
    report(lines)
    assert calls == {"_open": 1}
    report(tmp_path / "run.db")
    # All events, then those of the outputs that the page shows.
    assert calls == {"_open": 1, "connect": 1, "stored": 2}


def test_external_verdicts_are_kept_apart(tmp_path: Path) -> None:
    gate = run_log(tmp_path / "run.db", 120)
    ids = [f"o{i}" for i in range(120)]
    with VerificationGate(
        "cst",
        budget=gate.budget,
        verifier=gate.verifier,
        log=tmp_path / "run.db",
        settings={"note": None},
    ) as again:
        unchecked = [id_ for id_ in ids if (found := again.find(id_)) and not found.verified]
        own = again.status().verified
        for id_ in unchecked[1:]:
            again.report_outcome(id_, "passed")
        some = Page(report(tmp_path / "run.db")).text
        assert f"{own} labelled outputs after the warm-up. A lower curve" in some
        assert "only outputs that were selected for verification have a label here" in some
        again.report_outcome(unchecked[0], "passed")
        status = again.status()
    page = check(report(tmp_path / "run.db"), drawings=5)
    assert f"spent after the warm-up {status.spent:g} verifications" in page.text
    assert "Not every output was verified" not in page.text
    errors = status.errors_found + status.warmup_errors
    assert f"correct {120 - len(unchecked) - errors} {len(unchecked)}" in page.text


def test_text_from_the_file_stays_text(tmp_path: Path) -> None:
    name = "<img src=x onerror=alert(1)>&.jsonl"
    lines = records(80, group=HOSTILE, **{HOSTILE: HOSTILE})
    lines = [line | {"id": f"{HOSTILE}{i}"} for i, line in enumerate(lines)]
    page = check(report(write(tmp_path / name, lines)), drawings=4)
    assert name in page.text
    run_log(tmp_path / "run.db", 150, settings=HOSTILE)
    text = report(tmp_path / "run.db")
    page = check(text, drawings=4)
    assert "alert(1)" in page.text  # in the table of settings, as text
    assert "\x00" not in text
    text.encode()


@pytest.mark.parametrize(
    ("n", "change"),
    [
        (1, {}),
        (49, {}),
        (50, {}),
        (51, {}),
        (52, {}),
        (110, {"error": None, "cost": None}),
        (110, {"error": 1}),
        (110, {"error": 0}),
        (110, {"h1": None, "h2": None, "h3": None}),
        (110, {"h1": 1.0, "h2": 1.0, "h3": 1.0}),
        (110, {"cost_estimate": 2.0}),
        (110, {"h2": None}),
        (110, {"cost_estimate": 1e100, "cost": 1e-100}),
    ],
)
def test_thin_and_odd_files_give_a_page_too(
    n: int, change: dict[str, object], tmp_path: Path
) -> None:
    text = report(write(tmp_path / "thin.jsonl", records(n, **change)))
    drawn = {name: f'id="{name}-' in text for name in ("rho", "densities", "risk", "gain")}
    check(text, drawings=sum(drawn.values()))
    assert text.count("Cannot be computed") == 2 - drawn["risk"] - drawn["gain"]
    assert drawn["densities"] == (n > 50 and change.get("h1", 1.0) is not None)
    assert drawn["densities"] or not (drawn["rho"] or drawn["risk"])  # there is no score at all


def test_a_run_that_has_hardly_begun(tmp_path: Path) -> None:
    run_log(tmp_path / "run.db", 3)
    page = check(report(tmp_path / "run.db"), drawings=1)
    assert "3 outputs were seen. 3 were verified as a warm-up." in page.text
    assert "Every output has a verdict: 33.3% of all are wrong." in page.text


def test_verdicts_that_never_came_are_counted_alike_everywhere(tmp_path: Path) -> None:
    """Also those of outputs that were drawn with a probability below 1."""
    verdicts = {f"o{i}": None if i % 2 else int(i % 6 == 0) for i in range(200)}
    with VerificationGate(
        "random",
        budget=Budget(fraction=0.495),
        verifier=ScriptedVerifier(verdicts),  # type: ignore[arg-type]
        log=tmp_path / "run.db",
        on_unavailable="pass",
        warmup=20,
    ) as gate:
        results = [gate.maybe_verify(make_generation(f"o{i}", seed=i)) for i in range(200)]
    failed = summarise(results).could_not_tell
    assert failed > 40
    table = load_records(tmp_path / "run.db")
    for outputs in (results, table):
        assert f"{failed} selected outputs" in estimate(outputs).notes[-1]
        assert f"{failed} selected outputs" in estimate_score(outputs).notes[-1]
    page = Page(report(tmp_path / "run.db")).text
    assert "49.5% of the full cost" in page
    assert f"Without a verdict: {failed} selected outputs" in page
    assert f"Selected outputs without a verdict: {failed}." in page
    assert "200 outputs were seen. 10 of 20 were verified as a warm-up. Of the other 180," in page
    assert "verified of 20 in the warm-up 10 " in page
    assert "outputs without a verdict are left out here" in page  # all were as likely to be drawn
    assert "mostly uncertain ones" not in page


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["report", *map(str, arguments)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "Traceback" not in err
    return err


def test_wrong_input_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = write(tmp_path / "good.jsonl", records(60))
    out = tmp_path / "report.html"
    empty = write(tmp_path / "empty.jsonl", [])
    assert "absent.jsonl cannot be read" in refused(capsys, tmp_path / "absent.jsonl", "-o", out)
    assert "cannot be read" in refused(capsys, tmp_path, "-o", out)
    assert "holds no record" in refused(capsys, empty, "-o", out)
    other = tmp_path / "other.txt"
    other.write_text("hello\n")
    assert "line 1" in refused(capsys, other, "-o", out)
    (tmp_path / "fake.db").write_bytes(b"SQLite format 3\x00 and then nothing")
    assert "is not a log" in refused(capsys, tmp_path / "fake.db", "-o", out)
    with VerificationGate("cst", budget=Budget(fraction=0.2), log=tmp_path / "new.db"):
        pass
    assert "has not decided on any output yet" in refused(capsys, tmp_path / "new.db", "-o", out)
    assert "--budget/--beta '1'" in refused(capsys, good, "-o", out, "--beta", "1")
    assert not out.exists()
    assert "cannot be written" in refused(capsys, good, "-o", tmp_path / "none" / "r.html")
    assert "cannot be written" in refused(capsys, good, "-o", tmp_path)
    assert "is the input file itself" in refused(capsys, good, "-o", good)
    if os.path.exists("/dev/full"):
        assert "cannot be written" in refused(capsys, good, "-o", "/dev/full")


def test_the_command_writes_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "good.jsonl", [*records(80), {"id": "bad"}])
    out = tmp_path / "r.html"
    assert main(["report", str(path), "-o", str(out), "--skip-bad"]) == 0
    said = capsys.readouterr()
    assert str(out) in said.out
    assert "line 81" in said.err
    page = check(out.read_text(), drawings=4)
    assert "made with gatekeeper report --skip-bad good.jsonl -o report.html" in page.text


def test_the_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match=r"\(extra plots\): pip install '"):
        report(write(tmp_path / "r.jsonl", records(60)))


def test_outputs_without_a_chance_are_not_among_all(tmp_path: Path) -> None:
    """After the horizon a total is used up: the estimate is for the outputs before."""
    n, log = 120, tmp_path / "run.db"
    labels = {f"o{i}": int(i % 3 == 0) for i in range(n)}
    with VerificationGate(
        "random",
        budget=Budget(total=40, horizon=80),
        verifier=ScriptedVerifier(labels),  # type: ignore[arg-type]
        log=log,
        warmup=20,
    ) as gate:
        for i in range(n):
            gate.maybe_verify(make_generation(f"o{i}", seed=i))
    rate = estimate(load_records(log))
    assert rate.assisted is not None
    assert rate.covered < n
    found = f"An estimated {rate.assisted.value:.1%} of the {rate.covered} that had a chance"
    assert found in Page(report(log)).text
