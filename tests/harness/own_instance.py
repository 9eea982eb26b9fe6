"""An instance for SWE-bench of our own: a small repository with a bug, its tests, and its image.

The image is made of this machine's own programs, because no registry is needed for it: the
sandbox's, with bash, git and patch. Its name and everything else about it is in the instance.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any
from uuid import uuid4

from gatekeeper.sandbox import image

REPOSITORY = "gatekeeper-test-swebench"
MARK = uuid4().hex[:8]  # another process may test with the same engine
IMAGE = f"{REPOSITORY}:{MARK}"
PROGRAMS = ("bash", "cat", "git", "kill", "mkdir", "patch", "rm", "tail")
GIT = ("-c", "user.name=test", "-c", "user.email=test@example.org")
MODULE = '''\
def middle(values):
    """The middle one of the values by size."""
    return values[len(values) // 2]


def largest(values):
    return max(values)
'''
TESTS = """\
import unittest

from numbers_of import largest, middle


class TestNumbers(unittest.TestCase):
    def test_largest(self):
        self.assertEqual(largest([3, 1, 2]), 3)

    def test_sorted(self):
        self.assertEqual(middle([1, 2, 3]), 2)
"""
MORE_TESTS = """
    def test_unsorted(self):
        self.assertEqual(middle([9, 1, 5]), 5)
"""
RIGHT = "    return sorted(values)[len(values) // 2]\n"
LINE = "    return values[len(values) // 2]\n"


class Repository:
    """The repository in a folder, at the commit that a patch is for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "numbers_of.py").write_text(MODULE)
        (folder / "test_numbers.py").write_text(TESTS)
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("add", ".")
        self.git(*GIT, "commit", "--quiet", "--message=start")
        self.commit = self.git("rev-parse", "HEAD").strip()

    def git(self, *words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=self.folder, check=True, capture_output=True, text=True
        )
        return done.stdout

    def diff(self, name: str, text: str) -> str:
        """The patch that gives a file this text."""
        file = self.folder / name
        before = file.read_text()
        file.write_text(text)
        patch = self.git("diff")
        file.write_text(before)
        return patch

    def patch(self, line: str) -> str:
        """The patch that puts a line in the place of the wrong one."""
        return self.diff("numbers_of.py", MODULE.replace(LINE, line))

    def instance(self, id_: str, name: str = IMAGE) -> dict[str, Any]:
        """As SWE-bench's data sets have it."""
        test_patch = self.diff("test_numbers.py", TESTS + MORE_TESTS)
        script = f"""#!/bin/bash
set -uxo pipefail
cd /testbed
git checkout {self.commit} test_numbers.py
git apply -v - <<'EOF_114329324912'
{test_patch}EOF_114329324912
: '>>>>> Start Test Output'
python3 -m unittest -v
: '>>>>> End Test Output'
git checkout {self.commit} test_numbers.py
"""
        named = "{0} (test_numbers.TestNumbers.{0})".format
        return {
            "repo": "example/numbers",
            "instance_id": id_,
            "base_commit": self.commit,
            "patch": self.patch(RIGHT),
            "test_patch": test_patch,
            "problem_statement": "middle() is wrong for values that are not sorted.",
            "hints_text": "",
            "created_at": "2026-01-01T00:00:00Z",
            "version": "1",
            "FAIL_TO_PASS": [named("test_unsorted")],
            "PASS_TO_PASS": [named("test_largest"), named("test_sorted")],
            "environment_setup_commit": self.commit,
            "image": name,
            "eval_script": script,
            "log_parser": "parse_log_django",  # which reads unittest's lines
            "eval_type": "pass_and_fail",
        }


def build(client: Any, repository: Repository) -> None:
    """Build the image, with the repository at /testbed."""
    base = image.build(client, tag=f"{IMAGE}-base")
    paths = [shutil.which(program) for program in PROGRAMS]
    listed = subprocess.run(
        ["ldd", *filter(None, paths)],
        env={**os.environ, "LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=True,
    )
    libraries = set(re.findall(r"(?:^\t| => )(/.+) \(0x", listed.stdout, re.MULTILINE))
    steps = [
        f"FROM {base.id}",
        'COPY ["root/", "/"]',
        f"ENV LD_LIBRARY_PATH={':'.join(sorted({os.path.dirname(at) for at in libraries}))}",
        "STOPSIGNAL SIGKILL",  # `tail` as the first process ignores others: SWE-bench would wait
        "WORKDIR /testbed",
    ]
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", dereference=True) as tar:
        for path in filter(None, paths):
            tar.add(path, f"root/bin/{Path(path).name}")
        for path in sorted(libraries):
            folder, name = os.path.split(path)
            tar.add(path, f"root{os.path.realpath(folder)}/{name}")
        tar.add(repository.folder, "root/testbed", filter=_of_root)
        dockerfile = tarfile.TarInfo("Dockerfile")
        content = "\n".join(steps).encode()
        dockerfile.size = len(content)
        tar.addfile(dockerfile, io.BytesIO(content))
    file.seek(0)
    client.images.build(
        fileobj=file, custom_context=True, rm=True, forcerm=True, network_mode="none", tag=IMAGE
    )


def _of_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    return entry
