"""The notebook of the docs: it runs, shows what is stored in it, and becomes a page."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import io
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gatekeeper import Budget, VerificationGate
from gatekeeper.log.run import read_run
from gatekeeper.testing import ScriptedVerifier, make_generation

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "docs/notebook.ipynb"


def cells() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(NOTEBOOK.read_text())["cells"]
    return found


def run_cell(source: str, names: dict[str, Any]) -> tuple[str, str]:
    """What the cell prints, and the HTML of its last expression, as a notebook executes it."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed, shown = io.StringIO(), ""
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
            shown = "" if value is None else value._repr_html_()
    return printed.getvalue(), shown


def outline(html: str) -> tuple[list[str], int]:
    """Titles and heads without numbers, and how many rows: digits may differ elsewhere."""
    words = re.findall(r"<b>(.*?)</b>|<th>(.*?)</th>", html)
    return [re.sub(r"[\d,.]+|\w*-[0-9a-f]{6,}", "#", a or b) for a, b in words], html.count("<tr>")


def test_the_notebook_shows_what_it_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    tables = 0
    for cell in cells():
        if cell["cell_type"] != "code":
            continue
        printed, shown = run_cell("".join(cell["source"]), names)
        stored = [o for o in cell["outputs"] if "text/html" in o.get("data", {})]
        assert [outline("".join(o["data"]["text/html"])) for o in stored] == [
            outline(shown)
        ] * bool(shown)
        texts = ["".join(o["text"]) for o in cell["outputs"] if o["output_type"] == "stream"]
        assert [t.count("\n") > 0 for t in texts] == [True] * bool(printed)
        assert all(o["output_type"] != "error" for o in cell["outputs"])
        tables += bool(shown)
    assert tables == 5


def test_the_notebook_becomes_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the site, by the hook in docs/notebooks.py; mkdocs itself is not installed here."""
    for name in ("mkdocs", "mkdocs.config", "mkdocs.config.defaults", "mkdocs.structure"):
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(MkDocsConfig=object))  # type: ignore[arg-type]
    made: dict[str, str] = {}

    class File:
        src_uri, abs_src_path = "notebook.ipynb", str(NOTEBOOK)

        @staticmethod
        def generated(config: object, name: str, *, content: str) -> str:
            made[name] = content
            return name

    files = SimpleNamespace(File=File, Files=list)
    monkeypatch.setitem(sys.modules, "mkdocs.structure.files", files)  # type: ignore[arg-type]
    spec = importlib.util.spec_from_file_location("notebooks", ROOT / "docs/notebooks.py")
    assert spec is not None
    assert spec.loader is not None
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    assert hook.on_files([File()], None)[1:] == ["notebook.md"]
    page = made["notebook.md"]
    assert page.startswith("# In a notebook\n")
    assert page.count("```python\n") == sum(cell["cell_type"] == "code" for cell in cells())
    assert page.count('<div class="notebook-output">') == 5
    assert page.count("```text\n") == 1


def test_results_show_themselves_as_escaped_tables(tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>"
    with VerificationGate(
        "cst",
        budget=Budget(fraction=0.2),
        verifier=ScriptedVerifier({hostile: 1}),
        log=tmp_path / "run.db",
    ) as gate:
        result = gate.maybe_verify(make_generation(hostile, text=hostile))
        shown = [result, gate.status(), gate]
        assert gate._repr_html_() == gate.status()._repr_html_()
    run = read_run(tmp_path / "run.db")
    for thing in (*shown[:2], run):
        html = thing._repr_html_()
        assert "<script" not in html
        assert html.count("<tr>") == html.count("</tr>") > 0
    assert "failed" in result._repr_html_()
    assert "1 output, of which the first 1" in run._repr_html_()
