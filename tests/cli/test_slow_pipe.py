"""Standard input that does not block, as some programs leave it to the commands they start."""

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
