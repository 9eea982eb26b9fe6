"""The pages of docs/ that teach: their programs run as they stand and print what the page shows.

A page's ```python blocks are one program, in order. A block without a language, right after one,
is what the program has printed since the last such block.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGES = ["own-policy", "own-verifier"]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$\n*", re.MULTILINE | re.DOTALL)
MARK = "-- end of what the page shows --"


@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs(page: str, tmp_path: Path) -> None:
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


def test_no_link_of_the_docs_is_broken() -> None:
    for page in [*DOCS.glob("*.md"), DOCS.parent / "README.md"]:
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"
