"""The pages of docs/ that teach: their programs run as they stand and print what the page shows.

A page's ```python blocks are one program, in order. A block without a language, right after one,
is what the program has printed since the last such block; a ```text block shows what may differ in
a digit elsewhere.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from gatekeeper.cli import main

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ["calibrated", "maths", "own-policy", "own-verifier", "tour"]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$\n*", re.MULTILINE | re.DOTALL)
MARK = "-- end of what the page shows --"


@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (DOCS / f"{page}.md").read_text()
    program, shown, end = [], [], None
    for block in BLOCK.finditer(text):
        language, body = block.groups()
        if language == "python":
            program.append(body)
            end = block.end()
        elif not language and block.start() == end:
            program.append(f"print({MARK!r})\n")
            shown.append(body)
    assert program
    source = tmp_path / "page.py"
    source.write_text("".join(program))
    ran = subprocess.run(
        [sys.executable, "-W", "error", source], cwd=tmp_path, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    printed = ran.stdout.split(f"{MARK}\n")
    assert printed[: len(shown)] == shown
    if page == "tour":  # what its program leaves is looked at
        monkeypatch.chdir(tmp_path)
        for command in re.findall(r"^    gatekeeper (.*)$", text, re.MULTILINE):
            assert main(command.split()) in (0, 3, 4), command  # diagnose answers by it


def test_no_link_of_the_docs_is_broken() -> None:
    for page in [*DOCS.glob("*.md"), DOCS.parent / "README.md"]:
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"
