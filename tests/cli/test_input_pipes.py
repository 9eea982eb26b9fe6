"""Pipes that are read as input files: slow ones, and those that a link names."""

import os
from pathlib import Path
from threading import Timer

from gatekeeper.programs.values import input_file


def test_a_pause_of_the_writer_is_no_end() -> None:
    read, write = os.pipe()
    os.set_blocking(read, False)

    def give() -> None:
        os.write(write, b"late")
        os.close(write)

    Timer(0.2, give).start()
    try:
        path = input_file(f"/dev/fd/{read}")
        assert Path(path).read_bytes() == b"late"
    finally:
        os.close(read)


def test_a_link_to_a_pipe(tmp_path: Path) -> None:
    """Under any name of it, a pipe of this process is read once and kept."""
    read, write = os.pipe()
    os.write(write, b"kept")
    os.close(write)
    target, folder = f"/proc/self/fd/{read}", tmp_path / "fd"
    (tmp_path / "first").symlink_to(target)
    (tmp_path / "second").symlink_to("first")
    folder.symlink_to("/dev/fd")
    try:
        for name in (tmp_path / "second", tmp_path / "first", folder / str(read), target):
            assert input_file(str(name)).read_bytes() == b"kept"
    finally:
        os.close(read)


def test_links_that_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert input_file(str(tmp_path / "a")) == tmp_path / "a"  # whoever opens it reports the error
