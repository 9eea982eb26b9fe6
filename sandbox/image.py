"""The image that sandbox containers run: built, found, and extended with packages.

An image is made of a registry image, or of this machine's own Python where no registry is; then
come wheels, downloaded here because containers have no network, and compiled bytecode, because a
read-only container could never keep any. Everything is done by the engine's classic builder, whose
cache gives the same image for the same content.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from gatekeeper.errors import BadInputError, SandboxUnavailableError
from gatekeeper.sandbox import machine_python
from gatekeeper.sandbox.machine_python import Entry

__all__ = ["DEFAULT", "Image", "build", "find"]

REPOSITORY = "gatekeeper-sandbox"
DEFAULT = f"{REPOSITORY}:latest"  # what `gatekeeper sandbox build` built last, from whatever base
LABEL = "org.gatekeeper.sandbox"
PYTHON_LABEL = f"{LABEL}.python"
PACKAGES_LABEL = f"{LABEL}.packages"
OLDEST = (3, 10)  # that runs sandbox/inside

# Run by an interpreter to tell what it is. It imports what Debian's python3-minimal lacks and the
# sandbox or honest candidates need.
_PROBE = f"""
import sys
if sys.version_info >= {OLDEST}:
    import asyncio, ctypes, dataclasses, decimal, fractions, json, multiprocessing, platform, queue
    import resource, shutil, statistics, sysconfig, unittest
    about = dict(
        executable=sys.executable,
        version=sys.version_info[:2],
        implementation=sys.implementation.name,
        machine=platform.machine(),
        libc=platform.libc_ver(),
        stdlib=sorted({{sysconfig.get_path(name) for name in ("stdlib", "platstdlib")}}),
        packages=sysconfig.get_path("purelib"),
    )
    print(json.dumps(about))
else:
    print('{{"version": [%d, %d]}}' % sys.version_info[:2])
"""

# Files that do not compile (templates, Python 2) are left as they are, and so are tests. Hashes
# instead of times: nothing is looked up when a module is imported.
_COMPILE = """
import compileall, py_compile, re, sys
for folder in sys.argv[1:]:
    compileall.compile_dir(
        folder,
        quiet=2,
        workers=0,
        rx=re.compile(re.escape(folder) + ".*/(test|tests|idlelib|tkinter)/"),
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
"""

_REQUIREMENT = re.compile(r"[A-Za-z0-9][\w.-]*\s*(\[[^\]]*\]\s*)?([<>=!~;@(][^\r\n]*)?")


@dataclass(frozen=True, slots=True)
class Image:
    """An image of the engine in which `python` runs, for any user, without network or writing."""

    name: str
    id: str  # "sha256:…"
    python: str  # absolute path
    packages: str = ""  # what `requirements` added, as it was asked for: "numpy>=2 scipy"


@dataclass(frozen=True, slots=True)
class _Python:
    """What an interpreter says of itself."""

    executable: str
    version: tuple[int, int]
    implementation: str
    machine: str
    libc: tuple[str, str]  # ("glibc", "2.36"); ("", "") or ("musl", …) where it is musl
    stdlib: Sequence[str]
    packages: str  # the folder on sys.path for pure packages


def find(client: Any, image: str | None, requirements: Sequence[str]) -> Image:
    """The image to run: `image`, pulled where it is not local, or the default one.

    With requirements it is the one made of it and them, built where that was not done before.
    Raises SandboxUnavailableError where there is none to run, BadInputError for requirements that
    are none.
    """
    wanted = _sorted(requirements)
    name = DEFAULT if image is None else image
    found = _local(client, name)
    if found is None:
        if image is None:
            raise SandboxUnavailableError(
                f"there is no sandbox image {DEFAULT!r} yet: run `gatekeeper sandbox build`"
            )
        found = _pull(client, name)
    if wanted:
        digest = hashlib.sha256(json.dumps([found.id, wanted]).encode()).hexdigest()
        name = f"{REPOSITORY}:{digest[:16]}"
        derived = _local(client, name)
        if derived is None:
            return build(client, base=found.id, requirements=wanted, tag=name)
        found = derived
    labels = _labels(found)
    python = labels.get(PYTHON_LABEL) or _probe(client, found.id, name).executable
    return Image(name, found.id, python, labels.get(PACKAGES_LABEL, ""))


def build(
    client: Any,
    *,
    base: str | None = None,
    requirements: Sequence[str] = (),
    tag: str | None = None,
    progress: Callable[[str], None] = lambda step: None,
) -> Image:
    """Build a sandbox image and tag it; the same request again gives the same image.

    base          an image with Python 3.10 or newer, pulled where it is not local; None: this
                  machine's own Python and its standard library
    requirements  packages as pip takes them; installed from wheels for the image's Python
    tag           None: the image `DockerSandbox()` runs by default
    progress      is told each step

    Raises SandboxUnavailableError with the reason in one line, BadInputError for a tag or a
    requirement that is none.
    """
    wanted = _sorted(requirements)
    tag = DEFAULT if tag is None else tag
    _check_tag(tag)
    files: dict[str, Entry] = {}
    added = list(wanted)
    if base is None:
        python = _own()
        progress(f"copy {python.executable} and its standard library")
        tree = machine_python.members(python.executable, python.stdlib)
        files |= {f"root{path}": entry for path, entry in tree.items()}
        executable = machine_python.LINK
        steps = ["FROM scratch", 'COPY ["root/", "/"]', _compile(executable, python.stdlib)]
    else:
        found = _local(client, base)
        if found is None:
            progress(f"pull {base}")
            found = _pull(client, base)
        python = _probe(client, found.id, base)
        added[:0] = filter(None, [_labels(found).get(PACKAGES_LABEL)])
        executable = python.executable
        steps = [f"FROM {found.id}", "USER 0"]
        if not _labels(found).get(LABEL):
            steps.append(_compile(executable, python.stdlib))
    with (
        _failing(f"the image's files cannot be put together in {tempfile.gettempdir()}"),
        tempfile.TemporaryDirectory(prefix="gatekeeper-image-") as folder,
    ):
        if wanted:
            progress(f"download {', '.join(wanted)}")
            files |= _wheels(wanted, python, Path(folder))
            steps.append(f"COPY {json.dumps(['packages/', f'{python.packages}/'])}")
            steps.append(_compile(executable, [python.packages]))
        packages = " ".join(added)
        steps.append(f"LABEL {LABEL}=1 {PYTHON_LABEL}={json.dumps(executable)}")
        if wanted:
            steps.append(
                f"LABEL {PACKAGES_LABEL}={json.dumps(packages).replace('$', chr(92) + '$')}"
            )
        steps.append(f"CMD {json.dumps([executable])}")
        progress("build the image")
        id_ = _build(client, {**files, "Dockerfile": "\n".join(steps).encode()})
    _probe(client, id_, tag)  # it runs as a candidate's would, or is not given its name
    with _failing("the image cannot be tagged"):
        client.api.tag(id_, *_split(tag))
    return Image(tag, id_, executable, packages)


def _sorted(requirements: Sequence[str]) -> list[str]:
    if isinstance(requirements, str):
        raise BadInputError(f"requirements={requirements!r}: give a list, such as ['numpy>=2']")
    for requirement in requirements:
        if not isinstance(requirement, str) or not _REQUIREMENT.fullmatch(requirement.strip()):
            raise BadInputError(
                f"requirements: {requirement!r} is no package as pip takes it, such as 'numpy>=2'"
            )
    return sorted({requirement.strip() for requirement in requirements})


def _check_tag(tag: str) -> None:
    from docker.utils import match_tag

    if not match_tag(tag):
        raise BadInputError(f"tag={tag!r} is no name of an image, such as 'sandbox:numpy'")


def _split(name: str) -> tuple[str, str]:
    from docker.utils import parse_repository_tag

    repository, tag = parse_repository_tag(name)
    return repository, tag or "latest"


@contextmanager
def _failing(what: str) -> Iterator[None]:
    """Whatever the engine's client raises, as one line."""
    from docker.errors import DockerException
    from requests.exceptions import RequestException
    from urllib3.exceptions import HTTPError

    try:
        yield
    except (DockerException, RequestException, HTTPError, OSError) as e:
        raise SandboxUnavailableError(
            f"{what}: {_last_line(getattr(e, 'explanation', None) or str(e))}"
        ) from e


def _last_line(text: str | bytes) -> str:
    if isinstance(text, bytes):
        text = text.decode(errors="replace")
    if "no space left" in text.lower():
        return "the disk is full (no space left on device)"
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else "no reason given"


def _local(client: Any, name: str) -> Any | None:
    from docker.errors import ImageNotFound

    with _failing(f"image {name!r} cannot be looked up"):
        try:
            found = client.images.get(name)
        except ImageNotFound:
            return None
    if found.attrs["Config"].get("Volumes"):
        raise SandboxUnavailableError(
            f"image {name!r} declares volumes, which candidates could fill: use one without VOLUME"
        )
    return found


def _pull(client: Any, name: str) -> Any:
    failure = f"image {name!r} is not on this machine and cannot be pulled"
    with _failing(failure):
        repository, tag = _split(name)
        for event in client.api.pull(repository, tag=tag, stream=True, decode=True):
            if "error" in event:
                raise SandboxUnavailableError(f"{failure}: {_last_line(event['error'])}")
    found = _local(client, name)
    if found is None:
        raise SandboxUnavailableError(failure)
    return found


def _labels(found: Any) -> Mapping[str, str]:
    return found.attrs["Config"].get("Labels") or {}


def _probe(client: Any, id_: str, name: str) -> _Python:
    """Ask the image's python3, under a candidate's conditions: another user, an empty /tmp."""
    failure = f"image {name!r} has no python3 that candidates could run"
    with _failing(failure):
        container = client.containers.create(
            id_,
            ["-I", "-c", _PROBE],
            entrypoint=["python3"],
            user="65534:65534",
            working_dir="/",
            network_mode="none",
            read_only=True,
            tmpfs={"/tmp": "size=16m"},
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            mem_limit="512m",
            pids_limit=64,
            healthcheck={"test": ["NONE"]},
            log_config={"type": "json-file", "config": {"max-size": "1m"}},
        )
        try:
            container.start()
            code = container.wait()["StatusCode"]
            said, complaint = container.logs(stderr=False), container.logs(stdout=False)
        finally:
            container.remove(force=True)
    if code:
        raise SandboxUnavailableError(f"{failure}: {_last_line(complaint)}")
    return _read(said, f"image {name!r}")


def _own() -> _Python:
    said = subprocess.run(
        [machine_python.executable(), "-I", "-c", _PROBE], capture_output=True, text=True
    )
    if said.returncode:
        raise SandboxUnavailableError(
            f"this machine's own Python is not complete: {_last_line(said.stderr)}: "
            "gatekeeper sandbox build --base python:3.12-slim"
        )
    return _read(said.stdout, "this machine")


def _read(said: str | bytes, whose: str) -> _Python:
    try:
        about = json.loads(said)
        version = (about["version"][0], about["version"][1])
    except (ValueError, LookupError, TypeError):
        raise SandboxUnavailableError(
            f"{whose}: its python3 prints other things than its program says: {said!r:.80}"
        ) from None
    if version < OLDEST or about["implementation"] != "cpython":
        raise SandboxUnavailableError(
            f"{whose} has {about.get('implementation', 'Python')} {version[0]}.{version[1]}: "
            f"CPython {OLDEST[0]}.{OLDEST[1]} or newer is needed"
        )
    about |= {"version": version, "libc": tuple(about["libc"])}
    return _Python(**about)


def _wheels(requirements: Sequence[str], python: _Python, folder: Path) -> dict[str, Entry]:
    """The packages as files below "packages/", installed into `folder` for the image's Python."""
    if importlib.util.find_spec("pip") is None:
        raise SandboxUnavailableError(
            f"requirements need pip, which {sys.executable} does not have: "
            f"{sys.executable} -m ensurepip"
        )
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--no-compile"),
            *("--disable-pip-version-check", "--only-binary=:all:", "--target=packages"),
            f"--python-version={python.version[0]}.{python.version[1]}",
            "--implementation=cp",
            *(f"--platform={platform}" for platform in _platforms(python)),
            "--",
            *requirements,
        ],
        cwd=folder,  # where no file can be taken for a requirement
        capture_output=True,
        text=True,
    )
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR: ")]
        raise SandboxUnavailableError(
            f"no wheels of {', '.join(requirements)} for Python "
            f"{python.version[0]}.{python.version[1]} on {python.machine}: "
            + _last_line(errors[-1][len("ERROR: ") :] if errors else done.stderr)
        )
    return {
        str(file.relative_to(folder)): file
        for file in (folder / "packages").rglob("*")
        if file.is_file() and folder / "packages" / "bin" not in file.parents
    }


def _platforms(python: _Python) -> list[str]:
    """Platform tags of the wheels that run with the image's libc, the best first (PEP 600, 656)."""
    libc, version = python.libc
    if libc != "glibc":
        return [f"musllinux_1_{minor}_{python.machine}" for minor in (2, 1, 0)]
    newest = int(version.split(".")[1])
    old = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
    return [
        f"{name}_{python.machine}"
        for minor in range(newest, 4, -1)
        for name in (f"manylinux_2_{minor}", old.get(minor))
        if name
    ]


def _compile(executable: str, folders: Sequence[str]) -> str:
    """A step without `site`: nothing that a package brings runs here."""
    return f"RUN {json.dumps([executable, '-I', '-S', '-c', _COMPILE, *folders])}"


def _build(client: Any, context: Mapping[str, Entry]) -> str:
    """The id of the image that the context's Dockerfile makes."""
    with tempfile.TemporaryFile() as file:
        _write_tar(file, context)
        file.seek(0)
        with _failing("the image cannot be built"):
            image, _ = client.images.build(
                fileobj=file, custom_context=True, rm=True, forcerm=True, network_mode="none"
            )
    return str(image.id)


def _write_tar(file: IO[bytes], context: Mapping[str, Entry]) -> None:
    """The same bytes for the same content: sorted, no times, no owners, readable to everyone."""
    with tarfile.open(fileobj=file, mode="w") as tar:
        above = {str(parent) for name in context for parent in Path(name).parents[:-1]}
        for name, entry in sorted({**dict.fromkeys(above, 0o755), **context}.items()):
            info = tarfile.TarInfo(name)
            if isinstance(entry, int):
                info.type, info.mode = tarfile.DIRTYPE, entry
                tar.addfile(info)
            elif isinstance(entry, str):
                info.type, info.mode, info.linkname = tarfile.SYMTYPE, 0o777, entry
                tar.addfile(info)
            elif isinstance(entry, bytes):
                info.mode, info.size = 0o644, len(entry)
                tar.addfile(info, io.BytesIO(entry))
            else:
                with entry.open("rb") as content:
                    status = os.fstat(content.fileno())
                    info.mode = 0o755 if status.st_mode & 0o100 else 0o644
                    info.size = status.st_size
                    tar.addfile(info, content)
