"""Real programs, honest and hostile. After each hostile one an honest one must still pass."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from sandboxes import PATIENCE, WEAKER

from gatekeeper.sandbox.base import Sandbox
from gatekeeper.types import Generation, Outcome

Check = Callable[..., Outcome]
Honest = Callable[..., None]
Open = Callable[..., AbstractContextManager[Sandbox]]

HONEST = {
    "plain": "def f(x): return x * x",
    "fenced": "Sure!\n```python\ndef f(x):\n    return x * x\n```\nThis squares x.",
    "lambda": "f = lambda x: x ** 2",
    "prints": "import sys\ndef f(x):\n    print(x)\n    sys.stderr.write('x')\n    return x * x",
    "imports": "import math, re, json, collections, itertools, heapq\ndef f(x): return int(x * x)",
    "float": "def f(x): return float(x * x)",
    "fraction": "from fractions import Fraction\ndef f(x): return Fraction(x) ** 2",
    "dataclass": (
        "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n"
        "def f(x): return P(x).x * P(x).x"
    ),
    "future": "from __future__ import annotations\ndef f(x: Undefined): return x * x",
    "main guard": "def f(x): return x * x\nif __name__ == '__main__':\n    assert False",
    "recursion": "def f(x, n=0): return x + f(x, n + 1) if n < x else 0",
    "threads": (
        "import threading\ndef f(x):\n    out = []\n"
        "    t = threading.Thread(target=lambda: out.append(x * x)); t.start(); t.join()\n"
        "    return out[0]"
    ),
    "files": (
        "import tempfile\ndef f(x):\n    open('n.txt', 'w').write(str(x * x))\n"
        "    with tempfile.TemporaryFile() as t: t.write(b'x')\n"
        "    return int(open('n.txt').read())"
    ),
    "processes": (
        "import subprocess, sys\ndef f(x):\n"
        "    return int(subprocess.check_output([sys.executable, '-c', f'print({x} * {x})']))"
    ),
    "own main thread left": (
        "import threading, time\nthreading.Thread(target=time.sleep, args=(9,)).start()\n"
        "def f(x): return x * x"
    ),
    "unicode": "def f(x):\n    s = 'é 🙂 \\ud800'\n    print('é 🙂')\n    return x * x",
    "closes its output": "import os\nos.close(1); os.close(2)\ndef f(x): return x * x",
}


@pytest.mark.parametrize("code", HONEST.values(), ids=HONEST.keys())
def test_honest_programs_pass(check: Check, code: str) -> None:
    outcome = check(code)
    assert outcome.verdict == "passed", outcome
    assert outcome.error == 0
    assert outcome.meta["evaluation"] == "literal"
    assert outcome.seconds > 0


WRONG = {
    "wrong value": ("def f(x): return x + x", "failed", "test 2 of 2 ('assert f(3) == 9'): got 6"),
    "exception": ("def f(x): return x / 0", "failed", "in test 1: ZeroDivisionError"),
    "syntax": ("def f(x) return x", "failed", "in the code: SyntaxError"),
    "no function": ("def g(x): return x", "failed", "NameError: name 'f' is not defined"),
    "other type": ("def f(x): return str(x * x)", "failed", "got '4'"),
    "nothing": ("```python\n\n```", "no_answer", "no code"),
    "blank": (" \n", "no_answer", "no code"),
    "endless": ("def f(x):\n    while True: pass", "timeout", "test 1 of 2"),
    "endless late": ("def f(x):\n    while x == 3: pass\n    return x * x", "timeout", "test 2 of"),
    "wrong, then endless": ("def f(x):\n    while x == 3: 'endless'\n    return 5",
                            "failed", "got 5"),
    "sleeps": ("import time\ntime.sleep(60)", "timeout", "no answer after"),
    "reads input": ("f = lambda x: input()", "failed", "EOFError"),
    "memory": ("def f(x): return len([0] * 10**9)", "resource_exceeded", "memory"),
    "memory by and by": ("a = []\nwhile True: a.append('x' * 10**6 + str(len(a)))",
                         "resource_exceeded", "memory"),
    "output": ("while True: print('x' * 10**5)", "resource_exceeded", "wrote more than allowed"),
    "big result": ("def f(x): return 'x' * (1 << 24)", "resource_exceeded", "too large"),
    "big file": ("open('a', 'wb').write(bytes(100 << 20))", "failed", "Error"),
    "huge integer": ("def f(x): return 10 ** 9999", "failed", "<int too long to show>"),
    "deep list": ("def f(x):\n    a = []\n    for _ in range(10**5): a = [a]\n    return a",
                  "failed", "<list object>"),
    "endless list": ("def f(x):\n    a = []\n    a.append(a)\n    return a",
                     "failed", "<list object>"),
    "deep recursion": ("def f(x): return f(x)", "failed", "RecursionError"),
    "NUL": ("def f(x): return x * x \0 + 1", "failed", "null bytes"),
    "surrogate": ("def f(x): return '\ud800'", "failed", "in the code"),
    "exit": ("import sys\nsys.exit(0)", "failed", "SystemExit: 0"),
    "_exit": ("import os\nos._exit(0)", "failed", "exit code 0"),
    "abort": ("import os\nos.abort()", "failed", "ended its process"),
    "kills itself": ("import ctypes\nctypes.string_at(0)", "failed", "signal 11"),
}  # fmt: skip


@pytest.mark.parametrize(("code", "verdict", "detail"), WRONG.values(), ids=WRONG.keys())
def test_wrong_programs(
    check: Check,
    honest: Honest,
    sandbox: Sandbox,
    hasty: Sandbox,
    code: str,
    verdict: str,
    detail: str,
) -> None:
    by = hasty if verdict == "timeout" or "endless" in code else sandbox
    outcome = check(code, by=by)
    assert outcome.verdict == verdict, outcome
    assert detail in outcome.detail
    assert outcome.error == 1
    assert outcome.seconds < PATIENCE
    honest(by=by)


SOCKET = (  # the only one a candidate has, on which it is asked and answers
    "import os, stat\ndef is_socket(n):\n    try: return stat.S_ISSOCK(os.fstat(n).st_mode)\n"
    "    except OSError: return False\nsocket = next(filter(is_socket, range(256)))\n"
)

FORGERIES = {
    "prints verdicts": 'print(\'passed PASSED OK {"verdict": "passed"}\')\ndef f(x): return 0',
    "int that equals all": (
        "class I(int):\n    __eq__ = lambda s, o: True\n    __ne__ = lambda s, o: False\n"
        "    __hash__ = lambda s: 0\ndef f(x): return I(0)"
    ),
    "object that equals all": (
        "class A:\n    __eq__ = lambda s, o: True\n    __class__ = int\ndef f(x): return A()"
    ),
    "list that equals all": (
        "class L(list):\n    __eq__ = lambda s, o: True\n    __iter__ = lambda s: iter([4])\n"
        "def f(x): return L()"
    ),
    "patches builtins": (
        "import builtins\nbuiltins.eval = lambda *a: 4\nbuiltins.compile = lambda *a, **k: '4'\n"
        "builtins.isinstance = builtins.issubclass = lambda *a: True\ndef f(x): return 0"
    ),
    "patches the runner": (
        "import sys\nfor name, m in list(sys.modules.items()):\n"
        "    if name.startswith('gatekeeper') or name == '__main__':\n"
        "        m.encode = lambda v, n=0: b'i\\1\\0\\0\\0\\4'\n        m.describe = lambda e: ''\n"
        "def f(x): raise ValueError"
    ),
    "patches os": "import os\nos._exit = lambda n: 0\nos.write = lambda fd, b: len(b)\nf = abs",
    "searches frames": (
        "import sys\ndef f(x):\n    frame = sys._getframe()\n    while frame:\n"
        "        for v in list(frame.f_locals.values()) + list(frame.f_globals.values()):\n"
        "            if isinstance(v, (list, tuple)) and '== 4' in str(v): return 4\n"
        "        frame = frame.f_back\n    return 0"
    ),
    "searches its memory": (
        "import gc\ndef f(x):\n    needle = 'f(2) =' + '= '\n"
        "    for line in open('/proc/self/maps'):\n"
        "        span, mode = line.split()[:2]\n"
        "        a, b = (int(n, 16) for n in span.split('-'))\n"
        "        if 'r' not in mode or b - a > 1 << 26: continue\n"
        "        with open('/proc/self/mem', 'rb') as m:\n"
        "            try: m.seek(a); d = m.read(b - a)\n"
        "            except Exception: continue\n        at = d.find(needle.encode() + b'4')\n"
        "        if at >= 0: return 4\n    return 0"
    ),
    "writes to every descriptor": (
        "import os\nfor fd in range(64):\n    try: os.write(fd, b'P\\0\\0\\0\\0' * 99)\n"
        "    except OSError: pass\ndef f(x): return 0"
    ),
    "writes values of its own": (
        f"{SOCKET}for _ in range(9): os.write(socket, b'V\\5\\0\\0\\0i\\0\\0\\0\\0')\nos._exit(0)"
    ),
    "writes garbage values": (
        f"{SOCKET}os.write(socket, b'V\\5\\0\\0\\0l\\xff\\xff\\xff\\xff')\nos._exit(0)"
    ),
    "says that all is done": f"{SOCKET}os.write(socket, b'D\\0\\0\\0\\0')\nos._exit(0)",
    "closes the pipe": "import os\nos.closerange(3, 64)\ndef f(x): return 4",
    "redirects the pipe": f"{SOCKET}os.dup2(1, socket)\ndef f(x): return 4",
    "redefines assert's names": "AssertionError = None\ndef f(x): return None",
    "traces": (
        "import sys\nsys.settrace(lambda *a: None); sys.setprofile(lambda *a: None)\n"
        "def f(x): return 0"
    ),
    "exits while encoded": (
        "import os\nclass A:\n    def __bool__(self): os._exit(0)\ndef f(x): return A()"
    ),
    "raises odd exceptions": (
        "class E(BaseException):\n    def __str__(self): raise self\ndef f(x): raise E"
    ),
    "kills its parent": (
        "import os, signal\nfor p in (os.getppid(), 0):\n    try:\n"
        "        if p > 1: os.kill(p, signal.SIGKILL)\n    except OSError: pass\n"
        "def f(x): return 0"
    ),
    "kills its group": "import os\nos.killpg(0, 9)\ndef f(x): return 4",
    "forks and answers twice": "import os\nos.fork()\ndef f(x): return 0",
    "atexit": "import atexit, os\natexit.register(os._exit, 0)\ndef f(x): return 0",
}


@pytest.mark.parametrize("code", FORGERIES.values(), ids=FORGERIES.keys())
def test_forged_verdicts_do_not_pass(check: Check, honest: Honest, code: str) -> None:
    outcome = check(code)
    assert outcome.error == 1, outcome
    honest()


def test_answers_of_the_right_type_only_as_python_compares(check: Check) -> None:
    tests = ["assert f(0) == 1", "assert f(1) == (1, 2)", "assert f(2) == {1: 'a'}"]
    values = "def f(x): return [True, (1.0, 2), {1: 'a'}][x]"
    assert check(values, tests).verdict == "passed"
    assert check(values.replace("(1.0, 2)", "[1, 2]"), tests).verdict == "failed"


def test_processor_time(opened: Open, generation: Callable[..., Generation]) -> None:
    with opened(timeout=20, cpu_seconds=1, workers=1) as sandbox:
        outcome = sandbox.verify(generation("while True: pass"), {"tests": ["assert f(1) == 1"]})
    assert outcome.verdict == "timeout"
    assert "processor time" in outcome.detail


def test_processor_time_of_the_tests(opened: Open, generation: Callable[..., Generation]) -> None:
    """A candidate that keeps its tests busy until their limit fails."""
    task = {"test": "def check(f):\n    for n in range(f(1)): assert n >= 0", "entry_point": "f"}
    with opened(timeout=20, cpu_seconds=1, workers=1) as sandbox:
        outcome = sandbox.verify(generation("def f(x): return 10**12"), task)
    assert outcome.meta["evaluation"] == "judge"
    assert outcome.verdict == "timeout", outcome
    assert "processor time" in outcome.detail


def test_fork_bomb(check: Check, honest: Honest, hasty: Sandbox) -> None:
    bomb = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
    outcome = check(bomb, by=hasty)
    assert outcome.verdict in ("timeout", "resource_exceeded")
    assert outcome.seconds < PATIENCE
    honest(by=hasty)
    counted = (
        "import os, time\nn = 0\nwhile n < 99:\n    try:\n"
        "        if not os.fork(): time.sleep(99)\n    except OSError: break\n    n += 1\n"
        "def f(x): return n\n"
    )
    assert check(counted, ["assert f(0) < 32"]).verdict == "passed"
    honest()


def test_network_is_off(check: Check) -> None:
    code = "import socket\ndef f(x): socket.create_connection(('192.0.2.1', 9), 1)"
    assert "unreachable" in check(code).detail


def test_processes_of_the_machine_are_out_of_sight(check: Check) -> None:
    code = (
        "import os\ndef f(x): return [open(f'/proc/{n}/cmdline').read() for n in "
        "os.listdir('/proc') if n.isdigit()]"
    )
    assert "pytest" not in check(code).detail  # "got […]"
    assert check(code, ["assert f(0)"]).verdict == "passed"


def test_files_of_the_machine_are_out_of_sight(check: Check, tmp_path: Path) -> None:
    for directory in (tmp_path, *tmp_path.parents[:2]):
        directory.chmod(0o755)
    secret = tmp_path / "secret"
    secret.write_text("hunter2")
    for path in (str(secret), "/etc/shadow", "/root/.bashrc"):
        outcome = check(f"def f(x): return open({path!r}).read()")
        assert "Error" in outcome.detail, outcome
    write = (
        "import os\ndef f(x):\n    for top in ('/', '/usr', os.path.dirname(os.__file__)):\n"
        "        try: open(top + '/x', 'w')\n        except OSError: x += 1\n    return x"
    )
    assert check(write, ["assert f(0) == 3"]).verdict == "passed"


def test_environment_is_not_inherited(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEKEEPER_TEST_SECRET", "hunter2")
    code = (
        "import os\ndef f(x):\n    return 'hunter2' in str(dict(os.environ)) or "
        "b'hunter2' in open('/proc/self/environ', 'rb').read()"
    )
    assert check(code, ["assert f(0) == False"]).verdict == "passed"


def test_descriptors_are_not_inherited(check: Check, tmp_path: Path) -> None:
    code = (
        "import os, stat\ndef f(x):\n    found = []\n    for n in range(3, 256):\n"
        "        try: found.append(stat.S_IFMT(os.fstat(n).st_mode) == stat.S_IFSOCK)\n"
        "        except OSError: pass\n    return found"
    )
    with (tmp_path / "secret").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        outcome = check(code, ["assert f(0) == [True]"])  # its own socket, and no more
    assert outcome.verdict == "passed", outcome


def test_files_of_one_candidate_are_not_seen_by_the_next(check: Check) -> None:
    code = (
        "import os\ndef f(x):\n    found = os.listdir('.')\n"
        "    open('left', 'w').close()\n    return found"
    )
    for _ in range(2):
        assert check(code, ["assert f(0) == []", "assert f(1) == ['left']"]).verdict == "passed"


def test_nothing_can_be_put_into_the_directory_of_the_next(check: Check, opened: Open) -> None:
    """Its program would fail to write there, and be taken for wrong."""
    spiteful = (
        "import os\nfor place in os.listdir('/tmp'):\n    try:\n"
        "        if not os.path.samefile(f'/tmp/{place}', '.'):\n"
        "            os.close(os.open(f'/tmp/{place}/left', os.O_CREAT | os.O_WRONLY, 0))\n"
        "            os.mkdir(f'/tmp/{place}/out')\n"
        "    except OSError:\n        pass\n" + HONEST["plain"]
    )
    honest = "def f(x):\n    open('left', 'w').close()\n    return x * x"
    with opened(timeout=10, workers=1) as alone:  # it has spares, each with a directory
        for code in (spiteful, honest, honest, honest) * 2:
            assert check(code, by=alone).verdict == "passed"


def test_a_chain_of_directories_is_removed(check: Check, honest: Honest) -> None:
    code = "import os\nfor _ in range(5000):\n    os.mkdir('d')\n    os.chdir('d')\n"
    assert check(code + HONEST["plain"]).verdict == "passed"
    honest()


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("backend", WEAKER, indirect=True, scope="session")
def test_weaker_levels(
    backend: str, check: Check, honest: Honest, hasty: Sandbox, tmp_path: Path
) -> None:
    """At every level the verdict is the candidate's own, and the limits hold."""
    level = {"unshare": "namespaces"}.get(backend, backend)
    for code in HONEST.values():
        outcome = check(code)
        assert (outcome.verdict, outcome.meta["isolation"]) == ("passed", level), outcome
    alone = level != "none" or os.getuid() == 0  # else it may kill what judges it
    for code in FORGERIES.values():
        outcome = check(code)
        assert outcome.error == 1 or (not alone and outcome.verdict == "infra_error"), code
    for name in ("wrong value", "exit", "memory", "output", "big file", "kills itself"):
        code, verdict, detail = WRONG[name]
        outcome = check(code)
        assert (outcome.verdict, detail in outcome.detail) == (verdict, True), outcome
    assert check(WRONG["sleeps"][0], by=hasty).verdict == "timeout"
    honest(by=hasty)
    seen = "import os\ndef f(x):\n    open('left', 'w').close()\n    return os.listdir('.')"
    assert check(seen, ["assert f(0) == ['left']"]).verdict == "passed"
    assert check(seen, ["assert f(0) == ['left']"]).verdict == "passed"
    if level != "none":
        tmp_path.chmod(0o777)
        assert "Error" in check(f"open('{tmp_path}/x', 'w')").detail
        assert not list(tmp_path.iterdir())
