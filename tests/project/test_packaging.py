"""Packaging: the wheel is complete, import is light, dependencies between rooms go one way."""

from __future__ import annotations

import ast
import functools
import graphlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import gatekeeper
from gatekeeper.cli.doctor import EXTRAS

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
MAPPED = {"gatekeeper.adapters": "adapters", "gatekeeper.sandbox": "sandbox"}

# Every folder and module of the package, in the order in which they stand on each other: each one
# may import itself and what is left of it.
ORDER = """
    limits child_python errors plug_ins notebook printable wording arguments types protocols
    listening option_values signals costs budget stats policies drift log io verifiers ray testing
    gate __init__ analysis telemetry maths sandbox features log_mismatch bundled adapters report
    page gateway paper programs cli __main__ examples
""".split()  # noqa: SIM905
# What is imported against the order: inside a function, when it is first needed.
LATE = {
    ("errors", "types"): "an error holds the result that it is about: for type checkers alone",
    ("verifiers", "sandbox"): "a verifier is loaded when it is asked for by its name",
    ("verifiers", "maths"): "the same",
    (
        "gate",
        "adapters",
    ): "`task`, `observe_stream`, `results_of` load OpenAI's adapter",
    (
        "io",
        "adapters",
    ): "a response is read by its provider's reader, which is loaded when it comes",
    ("bundled", "adapters"): "the server answers with the model that the adapter runs",
}


@functools.cache
def packages() -> set[str]:
    """Every directory with an __init__.py, by its import name."""
    found = {
        ".".join(init.parent.relative_to(ROOT).parts)
        for init in (ROOT / "gatekeeper").rglob("__init__.py")
        if not any(p.is_symlink() for p in init.parents)
    }
    for name, folder in MAPPED.items():
        for init in (ROOT / folder).rglob("__init__.py"):
            found.add(".".join((name, *init.parent.relative_to(ROOT / folder).parts)))
    return found


def modules() -> Iterator[tuple[str, Path]]:
    """Dotted name and file of every module of the package, and of the examples."""
    for name in packages():
        top = next((m for m in MAPPED if name == m or name.startswith(f"{m}.")), None)
        folder = ROOT / name.replace(".", "/")
        if top:
            folder = ROOT / MAPPED[top] / name[len(top) + 1 :].replace(".", "/")
        for file in folder.glob("*.py"):
            yield name if file.stem == "__init__" else f"{name}.{file.stem}", file
    for file in (ROOT / "examples").glob("*.py"):
        yield f"gatekeeper.examples.{file.stem}", file


def place(module: str) -> str:
    name = module.split(".")[1] if "." in module else "__init__"
    assert name in ORDER, f"{module} has no place in ORDER"
    return name


def imports(file: Path, known: set[str]) -> Iterator[tuple[int, str]]:
    """(line, module of gatekeeper) of all that a file imports, wherever in it, by name too."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: write imports in full"
            full = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in known else str(node.module) for name in full]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            # "gatekeeper.maths:MathChecker", f"gatekeeper.{name}", a module's name
            name, colon, _ = node.value.partition(":")
            is_module = bool(colon) or name.endswith(".") or name not in packages()
            name = name.rstrip(".")
            names = [name] if is_module and name in known - {"gatekeeper"} else []
        else:
            continue
        for name in names:
            if name.split(".")[0] == "gatekeeper":
                yield node.lineno, name


def test_every_package_is_listed() -> None:
    """pyproject's explicit list, and the mapping of the two top-level directories, are complete."""
    listed = PYPROJECT["tool"]["setuptools"]["packages"]
    assert set(listed) == packages()
    assert listed == sorted(set(listed))
    mapping = PYPROJECT["tool"]["setuptools"]["package-dir"]
    assert mapping == {"gatekeeper": "gatekeeper"} | MAPPED


def test_the_links_for_uninstalled_checkouts() -> None:
    for name, folder in MAPPED.items():
        link = ROOT / name.replace(".", "/")
        assert link.is_symlink()
        assert os.readlink(link) == f"../{folder}"
        assert (link / "__init__.py").is_file()
    for file in (ROOT / "examples").glob("*.py"):
        assert file.stem not in sys.stdlib_module_names, f"{file.name} hides a standard module"


def test_dependencies_point_one_way() -> None:
    """Whatever form an import has; those of LATE are in use, and there are no others."""
    every = dict(modules())
    assert len(every) > 30
    against = [
        (place(module), place(target), f"{file.relative_to(ROOT)}:{line} imports {target}")
        for module, file in every.items()
        for line, target in imports(file, set(every))
        if ORDER.index(place(target)) > ORDER.index(place(module))
    ]
    wrong = [text for module, target, text in against if (module, target) not in LATE]
    assert not wrong, "\n".join(wrong)
    assert {pair for *pair_of, _ in against for pair in [tuple(pair_of)]} == set(LATE)


def test_examples_use_public_modules_only() -> None:
    every = dict(modules())
    found = [
        (file.name, target)
        for module, file in every.items()
        if module.startswith("gatekeeper.examples.")
        for _, target in imports(file, set(every))
    ]
    assert len(found) > 20
    private = [
        f"{name} imports {target}"
        for name, target in found
        if target.split(".")[1:2] == ["cli"]
        or any(part.startswith("_") for part in target.split("."))
    ]
    assert not private, "\n".join(private)


def test_no_modules_import_each_other_in_a_circle() -> None:
    every = dict(modules())
    graph = {
        module: {
            target
            for _, target in imports(file, set(every))
            if (place(module), place(target)) not in LATE
        }
        - {module, "gatekeeper"}
        for module, file in every.items()
    }
    try:
        list(graphlib.TopologicalSorter(graph).static_order())
    except graphlib.CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_import_is_light() -> None:
    """`import gatekeeper`, and deciding with it, loads no optional or heavy package."""
    code = """
import sys
import gatekeeper
gate = gatekeeper.VerificationGate("cst", budget=gatekeeper.Budget(fraction=0.2))
gate.maybe_verify(gatekeeper.Generation.from_logprobs("It is 5.", [-0.1, -0.4], id="a"))
print(*sys.modules)
"""
    run = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    roots = {name.partition(".")[0] for name in done.stdout.split()}
    heavy = {"openai", "vllm", "docker", "torch", "onnxruntime", "transformers", "tokenizers"}
    heavy |= {"scipy", "sympy", "math_verify", "pandas", "rich", "pydantic", "httpx", "pytest"}
    heavy |= {"asyncio", "filelock", "html"}
    assert "numpy" in roots
    assert not roots & heavy


def test_all_lists_every_public_name() -> None:
    """`__all__` is sorted, as ruff sorts it, and lists every public name but submodules."""
    names = gatekeeper.__all__
    public = {
        name
        for name, value in vars(gatekeeper).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert set(names) == public
    assert len(set(names)) == len(names)

    def order(name: str) -> tuple[int, str]:
        return (0 if name.isupper() else 1 if name[0].isupper() else 2), name

    assert names == sorted(names, key=order)
    for module, file in modules():
        tree = ast.parse(file.read_text())
        for node in tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                listed = ast.literal_eval(node.value)
                assert listed == sorted(listed, key=order), module


def test_what_other_modules_import_is_in_all() -> None:
    every = {module: ast.parse(file.read_text()) for module, file in modules()}
    listed = {
        module: ast.literal_eval(node.value)
        for module, tree in every.items()
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    }
    assert len(listed) > 200
    missing = {
        f"{node.module}.{alias.name}"
        for tree in every.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in listed
        for alias in node.names
        if alias.name not in listed[node.module] and f"{node.module}.{alias.name}" not in every
    }
    assert not missing


def test_one_version() -> None:
    """The installed distribution is this one."""
    assert importlib.metadata.version("llm-gatekeeper") == PYPROJECT["project"]["version"]


def test_the_wheel_has_everything(tmp_path: Path) -> None:
    """A wheel built from a copy of the checkout: all packages, py.typed, and the bundled model."""
    source, wheels = tmp_path / "source", tmp_path / "wheels"
    source.mkdir()
    skip = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in ("gatekeeper", "adapters", "sandbox"):
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=skip)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--disable-pip-version-check"]
    if installed_setuptools() >= 77:
        command.append("--no-build-isolation")
    done = subprocess.run(
        [*command, "--wheel-dir", str(wheels), str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    if "No matching distribution found for setuptools" in done.stderr:
        pytest.skip("setuptools >= 77 is neither installed nor to be had from the package index")
    assert done.returncode == 0, done.stderr[-3000:]
    (wheel,) = wheels.glob("*.whl")
    assert wheel.name.startswith("llm_gatekeeper-")
    inside = set(zipfile.ZipFile(wheel).namelist())

    page = {f"gatekeeper/page/{name}" for name in ("icon.svg", "page.css", "page.js")}
    expected = {"gatekeeper/py.typed", "gatekeeper/report/report.css", *page}
    for module, file in modules():
        if not module.startswith("gatekeeper.examples"):
            folder = module if file.stem == "__init__" else module.rpartition(".")[0]
            expected.add(f"{folder.replace('.', '/')}/{file.name}")
    bundled = ROOT / "gatekeeper" / "bundled"
    for file in (bundled / "tasks.jsonl", bundled / "README.md", *(bundled / "model").glob("*")):
        if file.is_file():
            expected.add(str(file.relative_to(ROOT)))
    again = "gatekeeper/bundled/model/model.safetensors"  # the weights of model.onnx, for vLLM
    assert expected - {again} <= inside
    assert again not in inside
    assert {"gatekeeper/adapters/openai/reader.py", "gatekeeper/sandbox/local.py"} <= inside
    tops = {name.split("/")[0] for name in inside}
    assert tops == {"gatekeeper", f"{wheel.name.removesuffix('-py3-none-any.whl')}.dist-info"}
    weights = sum(i.file_size for i in zipfile.ZipFile(wheel).infolist() if "/model/" in i.filename)
    assert weights <= 4_000_000


# One file per set that the Makefile installs, and the extras in it.
DEMO = ["demo", "math", "openai", "plots"]
SETS = {"demo": DEMO, "dev": [*DEMO, "docker", "postgres", "tables", "dev"]}
PIN = re.compile(
    r"([a-z0-9-]+)==([^\s;]+)(?: ; [^\\]+)?"  # name, version, on which machines
    r"(?: \\\n    --hash=sha256:[0-9a-f]{64})+\n"
)


def pins(name: str) -> dict[str, str]:
    """Versions in a set's file; fails where anything else stands there, such as an index."""
    text = re.sub("(?m)^#.*\n", "", (ROOT / "requirements" / f"{name}.txt").read_text())
    assert PIN.sub("", text) == ""
    return dict(PIN.findall(text))


def test_what_builds_the_site_is_named_by_its_hash() -> None:
    found = pins("docs")
    for requirement in map(Requirement, PYPROJECT["dependency-groups"]["docs"]):
        assert found[canonicalize_name(requirement.name)] in requirement.specifier, requirement


@pytest.mark.parametrize("name", SETS)
def test_what_make_installs_is_named_by_its_hash(name: str) -> None:
    """And is in pyproject's ranges; `make lock` renews it."""
    (demo,) = re.findall("^DEMO := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert demo.split() == DEMO
    found, extras = pins(name), PYPROJECT["project"]["optional-dependencies"]
    wanted = [*PYPROJECT["project"]["dependencies"], *PYPROJECT["build-system"]["requires"]]
    wanted += [requirement for extra in SETS[name] for requirement in extras[extra]]
    for requirement in map(Requirement, wanted):
        assert found[canonicalize_name(requirement.name)] in requirement.specifier, requirement


def test_the_demo_installs_what_the_tests_do() -> None:
    """No development tools, and the same versions: both may be in one environment."""
    assert pins("demo").items() <= pins("dev").items()
    assert not {"pytest", "mypy", "ruff", "docker"} & pins("demo").keys()


def installed_setuptools() -> int:
    try:
        return int(importlib.metadata.version("setuptools").partition(".")[0])
    except importlib.metadata.PackageNotFoundError:
        return 0


def test_doctor_names_every_extra() -> None:
    extras = set(PYPROJECT["project"]["optional-dependencies"])
    run = {"demo", "math", "plots", "docker"}  # their parts are run
    assert {extra for _, extra, *_ in EXTRAS} | run == extras - {"train", "dev"}
