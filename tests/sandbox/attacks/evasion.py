"""Wrong programs that try to get no verdict: they end, fill or halt the sandbox.

None of them is right from its second input on.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

__all__ = ["EVASIONS", "TASKS"]

TASKS: Mapping[str, Mapping[str, Any]] = {
    "literal": {"tests": ["assert f(2) == 4", "assert f(3) == 9"]},
    "judge": {"tests": ["x = f(2)\nassert x == 4", "y = f(3)\nassert y == 9"]},
    "stdin": {"input_output": {"inputs": ["2\n", "3\n", "4\n"], "outputs": ["4\n", "9\n", "16\n"]}},
}

_ANSWER = """
def f(x):
    return 4
if __name__ == "__main__":
    print(4, flush=True)
"""

_FIRST = {
    "daemons": """
        import os, time
        for n in range(70):
            try:
                if os.fork() == 0:
                    os.setsid()
                    time.sleep(1000)
            except OSError:
                pass
    """,
    "a fork bomb in threads": """
        import os, threading
        def bomb():
            while True:
                try:
                    if os.fork() == 0:
                        bomb()
                except OSError:
                    pass
        if os.fork() == 0:
            os.setsid()
            for n in range(8):
                try:
                    threading.Thread(target=bomb).start()
                except RuntimeError:
                    pass
            bomb()
    """,
    "a fork bomb that moves on": """
        import os
        if os.fork() == 0:
            os.setsid()
            while True:
                try:
                    if os.fork():
                        os._exit(0)
                except OSError:
                    pass
    """,
    "orphans with a parent of their own": """
        import ctypes, os, time
        if os.fork() == 0:
            os.setsid()
            ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
            for n in range(5):
                if os.fork() == 0:
                    os.setsid()
                    if os.fork():
                        os._exit(0)
                    time.sleep(1000)
            time.sleep(1000)
        time.sleep(0.05)
    """,
    "memory and files, full": """
        import os, time
        for place in ("/tmp", "/dev/shm", "/var/tmp", "."):
            try:
                for n in range(6):
                    with open(f"{place}/{n}", "wb") as file:
                        for _ in range(30):
                            file.write(b"x" * (1 << 20))
            except OSError:
                pass
        for n in range(12):
            if os.fork() == 0:
                os.setsid()
                try:
                    held = bytearray(40 << 20)
                    held[::4096] = b"x" * len(held[::4096])
                except MemoryError:
                    pass
                time.sleep(1000)
        time.sleep(0.2)
    """,
    "many files": """
        import os
        try:
            for n in range(60_000):
                os.close(os.open(str(n), os.O_CREAT | os.O_WRONLY))
        except OSError:
            pass
    """,
    "deep directories that nobody may enter": """
        import os
        for n in range(10_000):
            os.mkdir("d")
            os.chdir("d")
            if n % 100 == 0:
                os.chmod(".", 0o100)
    """,
    "all descriptors closed": "import os\nos.closerange(0, 256)",
    "all sockets shut": """
        import os, socket
        for fd in range(256):
            try:
                socket.socket(fileno=os.dup(fd)).shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
    """,
    "frames of all kinds": """
        import os
        for kind in b"RXISGMLEDPV":
            for fd in range(3, 64):
                try:
                    os.write(fd, bytes([kind]) + b"\\3\\0\\0\\0abc")
                except OSError:
                    pass
    """,
    "a million frames": """
        import os
        for fd in range(3, 64):
            try:
                for n in range(100):
                    os.write(fd, b"V\\0\\0\\0\\0" * 10_000)
            except OSError:
                pass
    """,
    "descriptors sent": """
        import os, socket
        for fd in range(3, 64):
            try:
                connection = socket.socket(fileno=os.dup(fd))
                for n in range(100):
                    socket.send_fds(connection, [b"V"], [0, 1, 2] * 20, socket.MSG_DONTWAIT)
            except OSError:
                pass
    """,
    "signals to everybody": """
        import os
        for number in (2, 15, 1, 10):
            for pid in (os.getppid(), 1, os.getppid() + 1, os.getpid() + 1, os.getpid() - 1):
                try:
                    if pid > 0:
                        os.kill(pid, number)
                except OSError:
                    pass
        if os.fork() == 0:
            for number in (19, 9):
                try:
                    os.kill(-1, number)
                except OSError:
                    pass
    """,
    "its limits taken away": """
        import os, resource
        for which in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE):
            resource.setrlimit(which, (0, 0))
        for pid in (os.getppid(), os.getpid() - 1, os.getpid() + 1):
            try:
                resource.prlimit(pid, resource.RLIMIT_CPU, (0, 0))
            except OSError:
                pass
    """,
    "stops itself": "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
    "starves itself, and hides with what": """
        import os, signal, time
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody counts what these use
        for n in range(20):
            if os.fork() == 0:
                while True:
                    if os.fork() == 0:
                        end = time.process_time() + 0.05
                        while time.process_time() < end:
                            pass
                        os._exit(0)
                    time.sleep(0.01)
        while True:
            pass
    """,
}

EVASIONS = {name: textwrap.dedent(first) + _ANSWER for name, first in _FIRST.items()}
