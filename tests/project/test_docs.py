"""The pages: their programs run, their links resolve, and what they cite is in the repository.

A page's ```python blocks are one program, in order. A block without a language, right after one,
is what the program has printed since the last such block; a ```text block shows what may differ in
a digit elsewhere.
"""

import argparse
import importlib
import json
import re
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from importlib import util
from pathlib import Path

import pytest

from gatekeeper import Budget, VerificationGate
from gatekeeper.cli import main, parser
from gatekeeper.io.providers import PROVIDERS
from gatekeeper.testing import ScriptedVerifier, make_generation

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [
    "averages",
    "calibrated",
    "drift",
    "features",
    "group-budgets",
    "maths",
    "own-policy",
    "own-verifier",
    "tour",
    "reference/records",
]
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
    if page == "tour":  # its commands read the files that its program leaves
        monkeypatch.chdir(tmp_path)
        for command in re.findall(r"^    gatekeeper (.*)$", text, re.MULTILINE):
            assert main(command.split()) in (0, 3, 4), command  # diagnose answers by it


def pages() -> list[Path]:
    """Every page that people read: of the site, and at the top of the repository."""
    found = [*DOCS.rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / ".github").rglob("*.md")]
    found.append(ROOT / "gatekeeper/bundled/README.md")
    assert len(found) > 30
    return found


def anchors(page: Path) -> set[str]:
    """The ids of a page's headings, as GitHub and the site make them."""
    headings = re.findall(r"^#+ (.*)$", BLOCK.sub("", page.read_text()), re.MULTILINE)
    plain = [re.sub(r"[^\w\s-]", "", heading.lower()) for heading in headings]
    return {re.sub(r"[\s]", "-", heading.strip()) for heading in plain}


def test_no_link_of_the_pages_is_broken() -> None:
    links = 0
    for page in pages():
        text = re.sub("`[^`\n]*`", "", BLOCK.sub("", page.read_text()))  # f["key"](x) is no link
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if "://" in target or target.startswith("mailto:"):
                continue
            links += 1
            file, _, anchor = target.partition("#")
            to = (page.parent / file).resolve() if file else page
            assert to.exists(), f"{page.relative_to(ROOT)}: {target}"
            if anchor and to.suffix == ".md":
                assert anchor in anchors(to), f"{page.relative_to(ROOT)}: {target}"
    assert links > 150


def test_lists_begin_after_an_empty_line() -> None:
    """Else the site has them in the paragraph before; GitHub does not mind."""
    lists = 0
    for page in DOCS.rglob("*.md"):
        before = ""
        for line in BLOCK.sub("", page.read_text()).splitlines():
            item, indented = re.match(r"\s*([-*]|\d+\.) ", line), before.startswith("  ")
            if item and before.strip() and not re.match(r"\s*([-*]|\d+\.) ", before):
                assert indented, f"{page.relative_to(ROOT)}: {line}"
            lists += bool(item)
            before = line
    assert lists > 100


def test_the_commands_of_the_pages_are_accepted() -> None:
    """Every command in a block, and every one in a sentence that names a file: by its parser."""
    made, accepted = parser(), 0
    for page in pages():
        text = re.sub(r"\\\n\s*", " ", page.read_text()).replace("…", "http://127.0.0.1")
        blocks = re.findall(r"^ {4}(.*)$", text, re.MULTILINE)
        blocks += "".join(re.findall(r"^```bash\n(.*?)^```$", text, re.M | re.S)).splitlines()
        commands = [
            m[1] for line in blocks if (m := re.match(r"(?:\w+=\S+ )*gatekeeper (.*)", line))
        ]
        commands += re.findall(r"`gatekeeper ([^`\n]*\.(?:db|jsonl)\b[^`\n]*)`", text)
        for command in commands:
            made.parse_args(shlex.split(command, comments=True))
        accepted += len(commands)
    assert accepted > 70


def test_the_test_runs_of_the_pages_select_tests() -> None:
    """Each `python -m pytest …`: its files are there, and `-k` selects some of them."""
    found = {
        run
        for page in pages()
        for run in re.findall(r"python -m pytest ([^`\n#]+)", page.read_text())
    }
    assert len(found) >= 3
    for run in sorted(found):
        command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *shlex.split(run)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, (run, done.stdout[-500:])


# -- what is cited ---------------------------------------------------------------------------------

TEXTS = {".py", ".md", ".toml", ".yml", ".yaml", ".cff", ".txt", ".css", ""}
OUTSIDE = {"build", "dist", "node_modules"}
IN_A_FOLDER = re.compile(
    r"(?<![\w./~-])(?:docs|tests|tools|benchmarks|examples|requirements|gatekeeper|sandbox|adapters)"
    r"/[\w./-]*\.(?:py|md|txt|toml|yml|yaml|svg|css)\b"
)
A_PAGE = re.compile(r"(?<![\w/-])(?:\.\./|[\w-]+/)*[\w-]+\.(?:md|tex)\b")


def texts() -> Iterator[Path]:
    """The files of the repository that people wrote."""
    for top in ROOT.iterdir():
        if top.is_file() and top.suffix in TEXTS:
            yield top
        if not top.is_dir() or top.name in OUTSIDE or top.name.endswith(".egg-info"):
            continue
        if top.name.startswith(".") and top.name not in (".ci", ".github"):
            continue
        for file in top.rglob("*"):
            inside = file.relative_to(ROOT).parts
            if any(ROOT.joinpath(*inside[:n]).is_symlink() for n in range(1, len(inside))):
                continue
            if file.is_file() and file.suffix in TEXTS and "__pycache__" not in inside:
                yield file


def test_what_is_cited_is_in_the_repository() -> None:
    """Pages and files, by name, wherever in code or prose."""
    wrong, cited = [], 0
    names = {file.name for file in texts()}
    names |= {f"{notebook.stem}.md" for notebook in DOCS.rglob("*.ipynb")}  # pages of the site
    for file in texts():
        text = file.read_text(errors="ignore")
        for name in IN_A_FOLDER.findall(text):
            if "NAME" in name:  # stands for any
                continue
            cited += 1
            if not (ROOT / name).exists() and not (file.parent / name).exists():
                wrong.append(f"{file.relative_to(ROOT)}: {name}")
        for name in A_PAGE.findall(text):
            cited += 1
            near = (file.parent / name, DOCS / name, ROOT / name)
            if not any(path.exists() for path in near) and name not in names:
                wrong.append(f"{file.relative_to(ROOT)}: {name}")
    assert cited > 200
    assert not wrong, "\n".join(sorted(set(wrong)))


def test_the_tests_that_pages_name_are_there() -> None:
    """`file.py::test_name`; a name without a file is of the file named before it."""
    named = 0
    for page in pages():
        file = ""
        for stem, test in re.findall(r"([\w/]*\w\.py)?::(\w+)", page.read_text()):
            file = stem or file
            found = list((ROOT / "tests").rglob(Path(file).name))
            assert found, f"{page.name}: {file}"
            assert any(f"def {test}(" in path.read_text() for path in found), f"{file}::{test}"
            named += 1
    assert named > 15


# -- the reference ---------------------------------------------------------------------------------


def parsers() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command that does something, by its full name."""

    def walk(one: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
        below = [a for a in one._actions if isinstance(a, argparse._SubParsersAction)]
        if not below:
            yield one.prog, one
        for action in below:
            for child in action.choices.values():
                yield from walk(child)

    yield from walk(parser())


def test_the_page_on_the_command_line_has_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    text = (DOCS / "reference/cli.md").read_text()
    sections = dict(re.findall(r"^## (gatekeeper .*)\n((?:(?!## ).*\n)*)", text, re.MULTILINE))
    commands = dict(parsers())
    assert sections.keys() == commands.keys()
    assert len(commands) > 10
    for name, one in commands.items():
        options = {option for a in one._actions for option in a.option_strings or [a.dest]} - {
            "-h",
            "--help",
        }
        listed = set(re.findall(r"`(--?[\w-]+)", sections[name]))
        listed |= {a.dest for a in one._actions if f"| `{a.dest}` |" in sections[name]}
        assert listed == options, name
        for action in one._actions:
            for choice in action.choices or ():
                assert f"`{choice}`" in sections[name], f"{name}: {choice}"


def test_the_help_has_every_default() -> None:
    """Also one that is 0."""
    for name, one in parsers():
        shown = one._get_formatter()
        for action in one._actions:
            if action.option_strings and action.default not in (None, argparse.SUPPRESS, "", []):
                is_flag = isinstance(action.default, bool)
                assert is_flag or "default" in (shown._get_help_string(action) or ""), (
                    name,
                    action,
                )


def test_the_page_on_architecture_names_every_room() -> None:
    """Every folder and module of the package, and no other, in a table of its own."""
    text = (DOCS / "architecture.md").read_text()
    table = text[text.index("| room |") :].split("\n\n")[0]
    named = {name for row in table.splitlines()[2:] for name in re.findall("`(\\w+)`", cell(row))}
    package = ROOT / "gatekeeper"
    rooms = {init.parent.name for init in package.glob("*/__init__.py")}
    rooms |= {file.stem for file in package.glob("*.py") if not file.stem.startswith("__")}
    assert named == rooms
    assert len(rooms) > 15


def cell(row: str) -> str:
    """The first one of a table's row."""
    return row.split("|")[1]


def test_the_page_on_the_log_has_every_field(tmp_path: Path) -> None:
    """Of a log with every kind of event, as SQLite has it."""
    log = tmp_path / "run.db"
    labels = {"a1": None, "a3": 1}
    budget = Budget(fraction=0.5, horizon=300)
    with VerificationGate(
        "cst",
        budget=budget,
        verifier=ScriptedVerifier(labels),
        log=log,
        on_unavailable="pass",
        settings={"model": "m"},
    ) as gate:
        for i in range(120):
            result = gate.maybe_verify(make_generation(f"a{i}", seed=i))
            if not result.decision.verify and not gate.status().external_verdicts:
                gate.report_outcome(result.id, "failed")
        gate.verifier.labels = {}
        gate.maybe_verify(make_generation("a1", seed=1))
    broken = tmp_path / "broken.db"
    with VerificationGate(
        "cst",
        budget=budget,
        verifier=ScriptedVerifier({f"b{i}": None for i in range(50)}),
        log=broken,
        on_unavailable="pass",
    ) as gate:
        for i in range(50):
            gate.maybe_verify(make_generation(f"b{i}", seed=i))
    page = (DOCS / "reference/log-format.md").read_text()
    sections = dict(re.findall(r"^### (.*)\n((?:(?!##).*\n)*)", page, re.MULTILINE))
    with closing(sqlite3.connect(log)) as db:
        events = db.execute("SELECT kind, data FROM events").fetchall()
        settings = dict(db.execute("SELECT name, value FROM settings"))
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
        steps = {name for (name,) in db.execute("SELECT name FROM migrations")}
    with closing(sqlite3.connect(broken)) as db:
        events += db.execute("SELECT kind, data FROM events").fetchall()
    kinds = {name.strip("`") for name in sections if name.startswith("`")}
    assert {kind for kind, _ in events} == kinds
    outcome = sections["`outcome`"]
    for kind, data in events:
        section = sections[f"`{kind}`"] + (outcome if kind == "audited" else "")
        for field in json.loads(data):
            assert f"`{field}`" in section, f"{kind}: {field}"
    for name, value in settings.items():
        assert f"`{name}`" in sections["Settings"]
        for field in json.loads(value) if name in ("budget", "exploration") else ():
            assert f"`{field}`" in sections["Settings"], f"{name}: {field}"
    for name in steps | {table for table in tables if not table.startswith("sqlite_")}:
        assert f"`{name}`" in page, name


def test_the_api_pages_name_existing_objects() -> None:
    """Each is a module, or a name in one, and together they have all of `gatekeeper.__all__`."""
    named = set()
    for page in (DOCS / "reference/api").glob("*.md"):
        named |= set(re.findall(r"^::: ([\w.]+)$", page.read_text(), re.MULTILINE))
    assert len(named) > 15
    for name in named:
        module, _, attribute = name.rpartition(".")
        if util.find_spec(module) and not has_module(name):
            assert hasattr(importlib.import_module(module), attribute), name


def test_the_api_pages_have_every_adapter() -> None:
    """Each file and folder of `adapters/`, but for parts that adapters share."""
    page = (DOCS / "reference/api/adapters.md").read_text()
    named = re.findall(r"^::: gatekeeper\.adapters\.(\w+)$", page, re.MULTILINE)
    found = {path.stem for path in (ROOT / "adapters").glob("[!_]*") if path.suffix in ("", ".py")}
    assert set(named) == found - {"fields", "harness"}
    assert {name for name in re.findall(r"`(\w+)`", page) if name in found} == set(named)
    for provider in PROVIDERS.values():
        for part in (provider.reader, provider.wrapper, provider.generator):
            assert not part or part.partition(":")[0].split(".")[2] in named


def has_module(name: str) -> bool:
    """Whether it is there; an adapter's package need not be installed."""
    try:
        return util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False
