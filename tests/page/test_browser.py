"""The page in a real browser."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from partly_verified import run_gate
from running_gateway import Running, running_gateway
from scripted_upstream import ScriptedUpstream, reply

from gatekeeper import Budget, Generation, Outcome, Verdict
from gatekeeper.page.access import Access
from gatekeeper.report.report import report

PATIENCE = 120_000  # milliseconds: only against hanging for ever
TABLES = """root => [...root.querySelectorAll("table")].map(
  table => [...table.rows].map(row => [...row.cells].map(cell => cell.textContent)))"""
HOSTILE = "</script></pre><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"


class Script:
    """Gives the verdict that the text names: wrong, right or infra_error, with hostile details."""

    def verify(self, generation: Generation, task: object) -> Outcome:
        if "?" in generation.text:
            return Outcome(Verdict.INFRA_ERROR, detail=HOSTILE)
        return Outcome(Verdict.FAILED if "wrong" in generation.text else Verdict.PASSED)


@contextmanager
def serving(log: Path, *, port: int = 0, budget: float = 1.0) -> Iterator[Running]:
    with (
        ScriptedUpstream(lambda request: [reply(b"{}")]) as upstream,
        running_gateway(
            upstream.url,
            verifier=Script(),
            budget=Budget(fraction=budget),
            gate={"log": log},
            page=Access(),
            port=port,
        ) as running,
    ):
        yield running


def hand_in(running: Running, id_: str, text: str) -> None:
    running.gate.maybe_verify(Generation(id_, text), {"kind": "math"})


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A tab that records its errors and its requests."""
    tab = browser.new_page()
    tab.set_default_timeout(PATIENCE)
    tab.asked, tab.wrong = [], []
    tab.on("request", lambda request: tab.asked.append(request.url))
    tab.on("pageerror", lambda error: tab.wrong.append(str(error)))
    tab.on("console", lambda message: tab.wrong.append(message.text))
    tab.on("dialog", lambda dialog: tab.wrong.append(dialog.message))
    yield tab
    tab.close()


def test_the_numbers_are_the_reports(tmp_path: Path, page: Any) -> None:
    """`gatekeeper watch` beside `gatekeeper report` on the same log: every table that both have."""
    log = tmp_path / "run.db"
    run_gate(log, explore=0.1, n=400)
    command = [sys.executable, "-m", "gatekeeper", "watch", str(log), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            page.goto(process.stderr.readline().split()[-1])
            page.get_by_text("400 outputs, ").wait_for()
            live = page.evaluate_handle("document.body")
            shown, numbers = live.evaluate(TABLES), texts(page, ".headline dd, dl.facts div")
            assert page.locator("[data-key]").count() == 50
            assert page.wrong == []
        finally:
            process.terminate()
        assert process.wait(PATIENCE) == 0
    made = tmp_path / "report.html"
    made.write_text(report(log))
    page.goto(made.as_uri())
    reported = page.evaluate_handle("document.body").evaluate(TABLES)
    rows = [row for table in reported for row in table]
    heads = [["", "outputs", "wrong", "share wrong"], ["from output", "status", "cause"],
             ["reason", "outputs", "selected", "verdicts", "wrong"],
             ["verdict", "within the budget", "external"]]  # fmt: skip
    same = [table for table in shown if table[0] in heads]
    assert len(same) == len(heads)
    assert all(table in reported for table in same)
    (rates,) = [table for table in shown if table[0][0] == "error rate"]
    assert len(rates) == 3
    assert all(row in rows for row in rates)
    report_numbers = texts(page, ".headline dd, dl.facts div")
    own = [text for text in numbers if not text.startswith("pace")]
    assert len(own) >= 6
    assert set(own) <= set(report_numbers)


def texts(page: Any, selector: str) -> list[str]:
    return [" ".join(text.split()) for text in page.locator(selector).all_inner_texts()]


def test_it_follows_a_gate_and_comes_back(tmp_path: Path, page: Any) -> None:
    """Over a reload, and over a gateway that was away; what was opened stays open."""
    log = tmp_path / "run.db"
    with closing_port() as port, serving(log, port=port) as running:
        hand_in(running, "first", "right")
        page.goto(f"{running.url}/gatekeeper/")
        page.get_by_text("1 output, ").wait_for()
        page.locator("summary", has_text="first").click()
        page.locator("article pre", has_text="right").wait_for()
        for i in range(60):
            hand_in(running, f"more{i}", "wrong")
        page.get_by_text("61 outputs, ").wait_for()
        assert page.locator("article pre", has_text="right").is_visible()  # 60 came after it
        assert texts(page, "#wrong-outputs-found tbody tr:nth-child(2)")
        page.reload()
        page.get_by_text("61 outputs, ").wait_for()
        first = page.locator("[data-key] strong").first
        assert first.inner_text() == "more59"
    page.get_by_text("Not connected").wait_for()
    with serving(log, port=port) as running:
        hand_in(running, "later", "right")
        page.get_by_text("62 outputs, ").wait_for()
        assert page.locator("[data-key] strong").first.inner_text() == "later"
        page.get_by_text("Not connected").wait_for(state="hidden")


@contextmanager
def closing_port() -> Iterator[int]:
    """A free port, for a server that comes back."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    yield port


def test_verdicts_by_button(tmp_path: Path, page: Any) -> None:
    """With the printed link; a second person sees it. Without a script, too."""
    with serving(tmp_path / "run.db") as running:
        for i in range(4):
            hand_in(running, f"q{i}", "right?")
        page.goto(f"{running.url}/gatekeeper/")
        page.get_by_text("4 outputs, ").wait_for()
        assert page.get_by_role("button").count() == 0
        page.goto(f"{running.url}/gatekeeper/?token={running.token}")
        assert "token" not in page.url
        page.get_by_role("button", name="pass: q1").click()
        page.locator(".done", has_text="q1").wait_for()  # in its place, under the pointer
        assert running.gate.find("q1").outcome.verdict is Verdict.PASSED
        running.gate.report_outcome("q2", "passed")  # by somebody else, meanwhile
        page.locator(".done", has_text="q2").wait_for()
        assert page.get_by_role("button", name="pass: q2").is_disabled()
        page.get_by_role("button", name="fail: q3").click()
        page.locator(".done", has_text="q3").wait_for()
        assert running.gate.find("q2").outcome.verdict is Verdict.PASSED
        assert running.gate.find("q3").outcome.verdict is Verdict.FAILED
        assert page.wrong == []
        plain = page.context.browser.new_context(java_script_enabled=False).new_page()
        plain.goto(f"{running.url}/gatekeeper/?token={running.token}")
        plain.get_by_role("button", name="fail: q0").click()
        plain.get_by_text("No output waits").wait_for()
        assert running.gate.find("q0").outcome.verdict is Verdict.FAILED
        plain.context.close()


def test_hostile_text_is_inert(tmp_path: Path, page: Any) -> None:
    """Tags, 10 MB, control and direction characters, in ids, texts and details."""
    odd = "\x00\x1b[2J\u202e\ud800\r\n"
    with serving(tmp_path / "run.db") as running:
        hand_in(running, f"{HOSTILE}\"'>&amp;", HOSTILE + "?" + odd)
        hand_in(running, "long", HOSTILE + "x" * 10_000_000 + "?")
        hand_in(running, "y" * 1000, odd * 1000)
        page.goto(f"{running.url}/gatekeeper/?token={running.token}")
        page.get_by_text("3 outputs, ").wait_for()
        for summary in page.locator("[data-key] summary").all():
            summary.click()
        page.locator("article").nth(4).wait_for()
        text = page.locator("body").inner_text()
        assert HOSTILE in text
        assert "of 10,000,0" in text
        assert len(text) < 1_000_000
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e]", text)
        assert page.evaluate("document.querySelectorAll('img, iframe, object').length") == 0
        assert page.evaluate("window.hacked") is None
        assert page.wrong == []
        with page.expect_console_message(lambda message: "connect-src" in message.text):
            page.evaluate("""() => { const s = document.createElement("script");
                s.textContent = "window.hacked = 3"; document.body.append(s);
                document.body.setAttribute("style", "color: red");
                fetch("http://127.0.0.1:9/").catch(() => {}); }""")
        assert page.evaluate("window.hacked") is None
        refused = " ".join(page.wrong)  # the policy says so on the console
        assert "script-src" in refused
        assert "style-src" in refused
        assert {url.split("/")[2] for url in page.asked} == {running.url.split("/")[2]}
