"""The image that sandbox containers run: built, found, and extended with packages.

An image is made of a registry image, or of this machine's own Python where no registry is; then
come wheels, downloaded here because containers have no network, and compiled bytecode, because a
read-only container could never keep any. Everything is done by the engine's classic builder, whose
cache gives the same image for the same content.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from gatekeeper.errors import BadInputError, SandboxUnavailableError
from gatekeeper.sandbox import interpreter, machine_python, wheels
from gatekeeper.sandbox.machine_python import Entry
from gatekeeper.sandbox.reprs import last_line

__all__ = ["DEFAULT", "Image", "build", "find"]

REPOSITORY = "gatekeeper-sandbox"
DEFAULT = f"{REPOSITORY}:latest"  # the last image of `gatekeeper sandbox build`, with any base
LABEL = "org.gatekeeper.sandbox"
PYTHON_LABEL = f"{LABEL}.python"
PACKAGES_LABEL = f"{LABEL}.packages"


# Files that do not compile (templates, Python 2) are skipped, and so are tests. Bytecode has
# unchecked hashes instead of times, so that an import does not look at the source.
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


@dataclass(frozen=True, slots=True)
class Image:
    """An image of the engine in which `python` runs, for any user, without network or writing."""

    name: str
    id: str  # "sha256:…"
    python: str  # absolute path
    packages: str = ""  # the added `requirements`, as given: "numpy>=2 scipy"


def find(client: Any, image: str | None, requirements: Sequence[str]) -> Image:
    """Find the image to run.

    Parameters
    ----------
    client
        Client of the engine.
    image
        Name of an image, pulled where it is not local; None: the default one.
    requirements
        Packages to add, as pip takes them. The image with them is built where there is none yet.

    Raises
    ------
    SandboxUnavailableError
        There is no image to run.
    BadInputError
        A requirement is invalid, or the image has no name.
    """
    if image is not None and not (isinstance(image, str) and image):
        raise BadInputError(f"image={image!r:.80}: give the name of an image, or None")
    wanted = wheels.checked(requirements)
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

    Parameters
    ----------
    client
        Client of the engine.
    base
        An image with Python 3.10 or newer, pulled where it is not local; None: this machine's own
        Python and its standard library.
    requirements
        Packages as pip takes them; installed from wheels for the image's Python.
    tag
        The image's name; None: the image that `DockerSandbox()` runs by default.
    progress
        Called with a text at each step.

    Raises
    ------
    SandboxUnavailableError
        The image cannot be built; the reason is one line.
    BadInputError
        The tag or a requirement is invalid.
    """
    wanted = wheels.checked(requirements)
    tag = DEFAULT if tag is None else tag
    _check_tag(tag)
    files: dict[str, Entry] = {}
    added = list(wanted)
    if base is None:
        python = interpreter.of_this_machine()
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
            files |= wheels.download(wanted, python, Path(folder))
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
    _probe(client, id_, tag)  # an image gets its name only if it runs as for a candidate
    with _failing("the image cannot be tagged"):
        client.api.tag(id_, *_split(tag))
    return Image(tag, id_, executable, packages)


def _check_tag(tag: str) -> None:
    from docker.utils import match_tag

    if not match_tag(tag):
        raise BadInputError(f"tag={tag!r} is not an image name such as 'sandbox:numpy'")


def _split(name: str) -> tuple[str, str]:
    from docker.utils import parse_repository_tag

    repository, tag = parse_repository_tag(name)
    return repository, tag or "latest"


@contextmanager
def _failing(what: str) -> Iterator[None]:
    """Any error of the engine's client, as one line."""
    from docker.errors import DockerException
    from requests.exceptions import RequestException
    from urllib3.exceptions import HTTPError

    try:
        yield
    except (DockerException, RequestException, HTTPError, OSError) as e:
        raise SandboxUnavailableError(
            f"{what}: {last_line(getattr(e, 'explanation', None) or str(e))}"
        ) from e


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
                raise SandboxUnavailableError(f"{failure}: {last_line(event['error'])}")
    found = _local(client, name)
    if found is None:
        raise SandboxUnavailableError(failure)
    return found


def _labels(found: Any) -> Mapping[str, str]:
    return found.attrs["Config"].get("Labels") or {}


def _probe(client: Any, id_: str, name: str) -> interpreter.Interpreter:
    """Ask the image's python3, under a candidate's conditions: another user, an empty /tmp."""
    failure = f"image {name!r} has no python3 that candidates could run"
    with _failing(failure):
        container = client.containers.create(
            id_,
            ["-I", "-c", interpreter.PROBE],
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
        raise SandboxUnavailableError(f"{failure}: {last_line(complaint)}")
    return interpreter.read(said, f"image {name!r}")


def _compile(executable: str, folders: Sequence[str]) -> str:
    """A build step. It runs without `site`, so that no code of a package runs."""
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
