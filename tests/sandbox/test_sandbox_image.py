"""The image of the Docker sandbox, on a real engine: its Python, and errors of building it."""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from packaging import tags

from gatekeeper.cli import main
from gatekeeper.cli.packages_option import add_with
from gatekeeper.errors import BadInputError, GatekeeperError, SandboxUnavailableError
from gatekeeper.sandbox import image, interpreter, machine_python, wheels
from gatekeeper.sandbox.engine import connect
from gatekeeper.sandbox.image import Image

REPOSITORY = f"gatekeeper-test-{os.getpid()}"  # of every image that a test makes
WHEELS = ["six", "markupsafe"]  # pure; compiled

# Prints modules of the standard library that cannot be imported. `antigravity` opens a browser.
STDLIB = """
import importlib, json, sys, warnings
warnings.simplefilter("ignore")
missing = []
for name in sorted(sys.stdlib_module_names - {"antigravity", "this"}):
    try:
        importlib.import_module(name)
    except ImportError:
        missing.append(name)
print(json.dumps(missing))
"""
LEFT_OUT = {"_tkinter", "ensurepip", "idlelib", "test", "tkinter", "turtle", "turtledemo"}

WORK = """
import asyncio, ctypes, decimal, json, os, pwd, sqlite3, ssl, subprocess, sys, threading, zoneinfo
done = []
thread = threading.Thread(target=done.append, args=[decimal.Decimal("0.5")])
thread.start()
thread.join()
child = [sys.executable, "-I", "-c", "print(6 * 7)"]
print(json.dumps({
    "thread": str(done[0]),
    "child": subprocess.check_output(child, text=True).strip(),
    "by name": subprocess.check_output(["python3", *child[1:]], text=True).strip(),
    "asyncio": asyncio.run(asyncio.sleep(0, "slept")),
    "libc": ctypes.CDLL(None).abs(-3),
    "sqlite": sqlite3.connect("/tmp/x.db").execute("select 7").fetchone()[0],
    "user": [os.getuid(), pwd.getpwuid(0).pw_name],
    "bytecode": [os.path.exists(module.__cached__) for module in (asyncio, json, ssl)],
    "writable": [at for at in ("/", "/etc", os.path.dirname(os.__file__)) if os.access(at, 2)],
    "executable": sys.executable,
}))
"""


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    try:
        client = connect()
    except GatekeeperError as e:
        pytest.skip(str(e))
    yield client
    for made in client.images.list(REPOSITORY):
        for name in made.tags:
            client.images.remove(name, force=True)
    client.close()


@pytest.fixture(scope="module")
def default(client: Any) -> Image:
    return image.build(client)


def run(client: Any, built: Image, program: str) -> Any:
    """What a program prints under the conditions of a candidate (docs/sandbox.md)."""
    printed = client.containers.run(
        built.id,
        ["-I", "-c", program],
        entrypoint=[built.python],
        user="12345:12345",
        read_only=True,
        network_mode="none",
        ipc_mode="none",
        cap_drop=["ALL"],
        security_opt=["no-new-privileges"],
        tmpfs={"/tmp": "size=16m"},
        pids_limit=64,
        mem_limit="512m",
        remove=True,
    )
    return json.loads(printed)


def make(client: Any, tag: str, *steps: str, **files: str) -> str:
    """An image made of a Dockerfile, outside what is tested."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, text in {"Dockerfile": "\n".join(steps), **files}.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
    out.seek(0)
    name = f"{REPOSITORY}:{tag}"
    client.images.build(fileobj=out, custom_context=True, tag=name, rm=True)
    return name


def test_own_python_has_the_whole_standard_library(client: Any, default: Image) -> None:
    here = subprocess.run(
        [machine_python.executable(), "-I", "-c", STDLIB], capture_output=True, check=True
    )
    assert set(run(client, default, STDLIB)) - set(json.loads(here.stdout)) <= LEFT_OUT


def test_own_python_works_for_any_user_without_writing(client: Any, default: Image) -> None:
    assert run(client, default, WORK) == {
        "thread": "0.5",
        "child": "42",
        "by name": "42",
        "asyncio": "slept",
        "libc": 3,
        "sqlite": 7,
        "user": [12345, "root"],
        "bytecode": [True, True, True],
        "writable": [],
        "executable": default.python,
    }


def test_the_same_again_is_the_same_image(client: Any, default: Image) -> None:
    assert image.build(client) == default == image.find(client, None, [])


def test_requirements_are_installed_once(
    client: Any, default: Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = image.find(client, None, WHEELS)
    try:
        program = (
            "import json, markupsafe, six; from markupsafe import _speedups;"
            "print(json.dumps([markupsafe.escape('<'), six.PY3, '__pycache__' in six.__cached__]))"
        )
        assert run(client, made, program) == ["&lt;", True, True]
        assert made.id != default.id
        monkeypatch.delattr(image, "build")  # not needed again, in whatever order
        assert image.find(client, None, [*WHEELS[::-1], " six"]) == made
        assert image.find(client, made.name, []) == made
    finally:
        client.images.remove(made.name)


def test_a_base_is_an_image_with_a_python(
    client: Any, default: Image, capsys: pytest.CaptureFixture[str]
) -> None:
    tag = f"{REPOSITORY}:base"
    # As from a registry: another user, an entry point, none of our labels.
    steps = (
        f"FROM {default.id}",
        "USER 4711",
        'ENTRYPOINT ["/bin/false"]',
        f"LABEL {image.LABEL}=",
    )
    base = make(client, "plain", *steps)
    command = ["sandbox", "build", "--base", base, "--with", ",".join(WHEELS), "--tag", tag]
    printed = []
    for _ in range(2):
        assert main([*command, "--json"]) == 0
        printed.append(json.loads(capsys.readouterr().out))
    assert printed[0].pop("seconds") > 0
    assert printed[1].pop("seconds") > 0
    assert printed[0] == printed[1]
    built = Image(**printed[0])
    assert built.name == tag
    assert built.packages.split() == sorted(WHEELS)
    assert image.find(client, tag, []) == built
    assert run(client, built, "import markupsafe, six; print('[]')") == []
    assert image.find(client, None, []) == default  # which another tag leaves alone


def test_an_image_that_cannot_run_candidates_is_refused(client: Any, default: Image) -> None:
    folder = run(
        client, default, "import json, sysconfig as s; print(json.dumps(s.get_path('purelib')))"
    )

    def odd(tag: str, code: str) -> str:
        copy = f"COPY sitecustomize.py {folder}/sitecustomize.py"
        steps = f"FROM {default.id}", copy, f'LABEL {image.PYTHON_LABEL}=""'
        return make(client, tag, *steps, **{"sitecustomize.py": code})

    cases = {
        make(client, "volume", f"FROM {default.id}", "VOLUME /data"): "declares volumes",
        make(client, "empty", "FROM scratch", "COPY Dockerfile /"): "has no python3",
        odd("old", "import sys; sys.version_info = (3, 8)"): "Python 3.8: CPython 3.10 or newer",
        odd("minimal", "import sys; sys.modules['json'] = None"): "has no python3.*json",
        odd("talker", "print('hello')"): "prints other things",
        "localhost:1/nothing": "not on this machine and cannot be pulled.*refused",
        "no name": "invalid reference format",
    }
    for name, reason in cases.items():
        with pytest.raises(SandboxUnavailableError, match=reason) as found:
            image.find(client, name, [])
        with pytest.raises(SandboxUnavailableError, match=reason) as built:
            image.build(client, base=name, tag=f"{REPOSITORY}:never")
        for error in (found, built):
            assert repr(name) in str(error.value)
            assert "\n" not in str(error.value)
    assert not client.images.list(f"{REPOSITORY}:never")


def test_a_missing_default_image_says_how_to_get_it(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image, "DEFAULT", f"{REPOSITORY}:missing")
    with pytest.raises(SandboxUnavailableError, match="run `gatekeeper sandbox build`"):
        image.find(client, None, [])


def test_a_requirement_without_a_wheel_is_named(
    client: Any, default: Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    for call in (
        lambda: image.find(client, None, ["gatekeeper-none-such"]),
        lambda: image.build(client, requirements=["gatekeeper-none-such"]),
    ):
        with pytest.raises(SandboxUnavailableError) as error:
            call()
        assert str(error.value) == (
            f"no wheels of gatekeeper-none-such for Python {sys.version_info[0]}."
            f"{sys.version_info[1]} on {os.uname().machine}: "
            "No matching distribution found for gatekeeper-none-such"
        )


@pytest.mark.parametrize("wrong", ["numpy", ["-r x"], ["../wheel"], [""], ["a\nb"], [3]])
def test_requirements_are_names_of_packages(wrong: Sequence[str]) -> None:
    with pytest.raises(BadInputError, match="requirements"):
        image.find(None, None, wrong)


@pytest.mark.parametrize(
    ("options", "packages"),
    [
        (["--with", "numpy,scipy"], ["numpy", "scipy"]),
        (["--with", "numpy", "--with", "scipy, six"], ["numpy", "scipy", " six"]),
        (["--with", "numpy>=1,<3,scipy"], ["numpy>=1,<3", "scipy"]),
        (["--with", "pandas[excel,plot],six"], ["pandas[excel,plot]", "six"]),
        (["--with", "numpy,"], ["numpy", ""]),  # which is refused as no package
        ([], []),
    ],
    ids=str,
)
def test_packages_are_separated_by_commas(options: list[str], packages: list[str]) -> None:
    parser = argparse.ArgumentParser()
    add_with(parser, "packages")
    assert parser.parse_args(options).packages == packages


@pytest.mark.parametrize("tag", ["", "A:B:C", "white space", "-x"])
def test_a_tag_is_a_name_of_an_image(tag: str) -> None:
    pytest.importorskip("docker")
    with pytest.raises(BadInputError, match="tag="):
        image.build(None, tag=tag)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="libc's tags are Linux's")
def test_wheels_are_asked_for_by_the_tags_that_run_here() -> None:
    here = [tag for tag in tags.platform_tags() if not tag.startswith("linux_")]
    assert wheels.platforms(interpreter.of_this_machine()) == here


def test_files_are_the_same_bytes_and_readable_to_everyone(tmp_path: Path) -> None:
    program, text = tmp_path / "program", tmp_path / "text"
    written = []
    for seconds in (1, 2):
        for file, mode in ((program, 0o700), (text, 0o600)):
            file.write_text("x")
            file.chmod(mode)
            os.utime(file, (seconds, seconds))
        out = io.BytesIO()
        entries = {"b/program": program, "a": text, "b/link": "program", "tmp": 0o1777}
        image._write_tar(out, dict(sorted(entries.items(), reverse=seconds == 2)))
        written.append(out.getvalue())
    assert written[0] == written[1]
    with tarfile.open(fileobj=io.BytesIO(written[0])) as tar:
        modes = {info.name: oct(info.mode) for info in tar if not info.issym()}
    assert modes == {"a": "0o644", "b": "0o755", "b/program": "0o755", "tmp": "0o1777"}


def test_links_on_the_way_to_a_file_are_kept(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    (root / "usr" / "lib" / "deep").mkdir(parents=True)
    (root / "usr" / "lib" / "libx.so.1.2").write_text("x")
    (root / "lib").symlink_to("usr/lib")
    (root / "usr" / "lib" / "libx.so.1").symlink_to(root / "lib" / "libx.so.1.2")
    (root / "deep").symlink_to("usr/lib/deep")
    path = root / "deep" / ".." / "libx.so.1"  # usr/lib/libx.so.1, as the kernel reads it
    tree = machine_python._Tree()
    tree.add(path)
    assert tree.entries == {
        root / "deep": "usr/lib/deep",
        root / "lib": "usr/lib",
        root / "usr" / "lib" / "libx.so.1": str(root / "lib" / "libx.so.1.2"),
        path.resolve(): path.resolve(),
    }
