"""Work of the tests that a candidate cancels or leaves, and failures that it would hide by objects."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from dataclasses import replace

from attacks.known_by_objects import ASKS
from attacks.program import SQUARE, ZERO, Topic

__all__ = ["LEFT_WORK"]

LEFT_WORK = Topic("left work")
forged, left_out = LEFT_WORK.forged, LEFT_WORK.left_out
CB = "from solution import f\n\ndef test_f():\n    assert f(lambda x: x * 2, 3) == 6\n"
OK = "def f(g, x):\n    return g(x)\n"


def evade(name: str, body: str, test: str = CB, honest: str = OK) -> None:
    """Add a wrong candidate that would get no verdict, though the tests hand over nothing special."""
    forged(f"evade by {name}", ASKS + f"def f(g, x=0):\n{body}\n    return 0\n", honest, test)


def either(name: str, lie: str, honest: str, test: str) -> None:
    """Add a candidate that leaves out an assertion, which fails or gets no verdict."""
    left_out(name, lie, honest, test)
    LEFT_WORK[-2] = replace(LEFT_WORK[-2], verdicts=("failed", "timeout", "infra_error"))


DEC = "    import decimal\n    try:\n        g(decimal.Decimal('sNaN'))\n    except Exception as e:\n        err = sys.modules['gatekeeper.sandbox.inside.references'].original(e)\n"
SWEEP = "    for n in range(1, 60):\n        for op, *a in (('set', 'x', 1), ('set', 'args', 1), ('set', 'daemon', 1), ('delete', 'args'), ('get', 'args'), ('get', '_condition'), ('repr',), ('str',), ('format', ''), ('own', 'x', 1), ('disown', 'x')):\n            try:\n                ask(op, at(n), *a)\n            except Exception:\n                pass\n"
evade("a signalling NaN", DEC)
evade("a signalling NaN, and all numbers", DEC + SWEEP)
evade(
    "a type error, and all numbers",
    "    try:\n        g()\n    except Exception:\n        pass\n" + SWEEP,
)
evade("all numbers", SWEEP)
evade(
    "an exception's class",
    "    try:\n        g()\n    except Exception as e:\n        for n in range(1, 12):\n            try:\n                ask('set', at(n), 'x', 1)\n            except Exception:\n                pass\n",
)
OWNERR = "from solution import f\n\nclass Bad(Exception):\n    pass\ndef bad(x):\n    raise Bad(x)\ndef test_f():\n    assert f(bad, 3) == 'Bad'\n"
GOTERR = "def f(g, x):\n    try:\n        g(x)\n    except Exception as e:\n        return type(e).__name__\n"
evade(
    "an exception class of the tests",
    "    try:\n        g(3)\n    except Exception as e:\n        type(e).x = 1\n" + SWEEP,
    OWNERR,
    GOTERR,
)
OWN = "from solution import f\n\nclass Box:\n    def __init__(self, n):\n        self.n = n\ndef test_f():\n    assert f(Box(3)) == 9\n"
OWNOK = "def f(box):\n    return box.n ** 2\n"
evade("an object of the tests", SWEEP, OWN, OWNOK)
evade(
    "a class of the tests by its object",
    "    try:\n        type(g).x = 1\n    except Exception:\n        pass\n    try:\n        ask('set', ask('call', ask('get', type(g), 'mro'))[0], 'x', 1)\n    except Exception:\n        pass\n    try:\n        ask('set', ask('copy', type(g)), 'x', 1)\n    except Exception:\n        pass\n",
    OWN,
    OWNOK,
)
evade(
    "a class of the tests through an object",
    "    g.k = type(g)\n    try:\n        ask('set', g.k, 'x', 1)\n    except Exception:\n        pass\n",
    OWN,
    OWNOK,
)
ITER = "from solution import f\n\ndef test_f():\n    assert f({it}) == 6\n"
for name, it in {
    "a generator": "(n for n in (1, 2, 3))",
    "a map": "map(int, '123')",
    "a range": "iter([1, 2, 3])",
    "a dict view": "{1: 0, 2: 0, 3: 0}.keys()",
    "a zip": "dict(zip((1,2,3), 'abc'))",
}.items():
    evade("all of " + name, SWEEP, ITER.format(it=it), "def f(g):\n    return sum(g)\n")
STDIN = "import io, sys\nfrom solution import f\n\ndef test_f(monkeypatch=None):\n    old, sys.stdin = sys.stdin, io.StringIO('3\\n')\n    try:\n        got = f(1)\n    finally:\n        sys.stdin = old\n    assert got == 3\n"
evade(
    "standard input",
    "    for name in ('x', 'daemon', 'line_buffering', 'closed', 'newlines', '_x'):\n        try:\n            setattr(sys.stdin, name, 1)\n        except Exception:\n            pass\n    repr(sys.stdin)\n"
    + SWEEP,
    STDIN,
    "def f(g):\n    return int(input())\n",
)
PATCHED = "import builtins\nfrom unittest.mock import patch\nfrom solution import f\n\ndef test_f():\n    with patch('builtins.input', side_effect=['3']):\n        assert f(1) == 3\n"
evade(
    "a patched input",
    "    import builtins\n    for name in ('x', 'daemon', 'return_value', 'called', '_x'):\n        try:\n            setattr(builtins.input, name, lambda: 1)\n        except Exception:\n            pass\n        try:\n            setattr(builtins.input.a().b, name, lambda: 1)\n        except Exception:\n            pass\n    repr(builtins.input)\n"
    + SWEEP,
    PATCHED,
    "def f(g):\n    return int(input())\n",
)
DATE = "from datetime import datetime\nfrom decimal import Decimal\nfrom pathlib import Path\nfrom solution import f\n\ndef test_f():\n    assert f(datetime(2024, 1, 2), lambda a: a) == 2\n"
evade(
    "dates",
    SWEEP
    + "    class B:\n        pass\n    for o in (g, B(), B):\n        try:\n            x(o).y = 1\n        except Exception:\n            pass\n",
    DATE,
    "def f(g, x):\n    return x(g).day\n",
)
JS = "import json\nfrom solution import f\n\ndef test_f():\n    assert f(lambda s: json.loads(s), '3') == 3\n"
evade(
    "a JSON error",
    "    try:\n        g('{')\n    except Exception as e:\n        for op in ('set', 'own'):\n            for n in range(1, 30):\n                try:\n                    ask(op, at(n), 'doc', 1)\n                except Exception:\n                    pass\n        repr(e)\n",
    JS,
)
evade(
    "the own module",
    "    try:\n        ask('set', g, '__defaults__', 1)\n    except Exception:\n        pass\n    for a in ('__globals__', '__code__', '__wrapped__', 'x'):\n        try:\n            ask('get', g, a)\n        except Exception:\n            pass\n",
)
ENUM = "from enum import Enum\nfrom solution import f\n\nclass C(Enum):\n    A = 1\n    B = 2\ndef test_f():\n    assert f(C.A) == 2\n"
evade(
    "an enum's member",
    "    try:\n        type(g).A = 1\n    except Exception:\n        pass\n    try:\n        g.value = 5\n    except Exception:\n        pass\n"
    + SWEEP,
    ENUM,
    "def f(g):\n    return len(list(type(g)))\n",
)
DCF = "from dataclasses import dataclass\nfrom solution import f\n\n@dataclass(frozen=True)\nclass P:\n    n: int\ndef test_f():\n    assert f(P(3)) == 9\n"
evade(
    "a frozen dataclass",
    "    try:\n        g.n = 1\n    except Exception:\n        pass\n" + SWEEP,
    DCF,
    "def f(g):\n    return g.n ** 2\n",
)
# --- pools, futures, tasks, threads that assert and are never run
TH = "import threading, time, queue, asyncio, argparse\nfrom concurrent.futures import ThreadPoolExecutor\nfrom solution import f, run\n\ndef look(n):\n    assert f(n) == n * n\n\ndef test_look():\n    assert f(0) == 0\n    {call}\n"
SLOW = "import time\ndef f(x):\n    time.sleep(0.3)\n    return 0\n"
POOLS = "pool = ThreadPoolExecutor(1)\n    made = [pool.submit(look, n) for n in range(4)]\n    {run}\n    pool.shutdown()\n"
either(
    "pool.shutdown cancels",
    SLOW + "def run(pool):\n    pool.shutdown(wait=False, cancel_futures=True)\n",
    SQUARE + "def run(pool):\n    pass\n",
    TH.format(call=POOLS.format(run="run(pool)")),
)
either(
    "future.cancel of a pool",
    SLOW + "def run(made):\n    for one in made:\n        one.cancel()\n",
    SQUARE + "def run(made):\n    for one in made:\n        one.result()\n",
    TH.format(call=POOLS.format(run="run(made)")),
)
either(
    "set_result of a pool's future",
    SLOW
    + "def run(made):\n    for one in made:\n        try:\n            one.set_result(1)\n        except Exception:\n            pass\n",
    SQUARE + "def run(made):\n    for one in made:\n        one.result()\n",
    TH.format(call=POOLS.format(run="run(made)")),
)
either(
    "set_running of a pool's future",
    SLOW
    + "def run(made):\n    for one in made:\n        try:\n            one.set_running_or_notify_cancel()\n        except Exception:\n            pass\n",
    SQUARE + "def run(made):\n    for one in made:\n        one.result()\n",
    TH.format(call=POOLS.format(run="run(made)")),
)
either(
    "future.cancel of one that is awaited by result",
    SLOW + "def run(made):\n    for one in made:\n        one.cancel()\n",
    SQUARE + "def run(made):\n    pass\n",
    TH.format(call=POOLS.format(run="run(made)\n    [m.result() for m in made]")),
)
QUEUED = "def run(q):\n    while not q.empty():\n        q.get_nowait()()\n"
for name, make in {
    "queue.Queue": "queue.Queue()",
    "SimpleQueue": "queue.SimpleQueue()",
    "asyncio.Queue": "asyncio.Queue()",
    "PriorityQueue": "queue.LifoQueue()",
}.items():
    either(
        "jobs in " + name,
        "def run(q):\n    pass\n" + ZERO,
        QUEUED + SQUARE,
        TH.format(call=f"q = {make}\n    q.put_nowait(lambda: look(3))\n    run(q)")
        if "Simple" not in name
        else TH.format(call=f"q = {make}\n    q.put(lambda: look(3))\n    run(q)"),
    )
either(
    "a function in argparse.Namespace",
    "def run(a):\n    pass\n" + ZERO,
    "def run(a):\n    a.func(3)\n" + SQUARE,
    TH.format(call="run(argparse.Namespace(func=look))"),
)
either(
    "a function in SimpleNamespace",
    "def run(a):\n    pass\n" + ZERO,
    "def run(a):\n    a.func(3)\n" + SQUARE,
    TH.format(call="import types\n    run(types.SimpleNamespace(func=look))"),
)
either(
    "a function in a mock",
    "def run(a):\n    pass\n" + ZERO,
    "def run(a):\n    a.func(3)\n" + SQUARE,
    TH.format(call="from unittest.mock import Mock\n    run(Mock(func=look))"),
)
either(
    "a mock's side effect",
    "def run(a):\n    pass\n" + ZERO,
    "def run(a):\n    a(3)\n" + SQUARE,
    TH.format(call="from unittest.mock import Mock\n    run(Mock(side_effect=look))"),
)
either(
    "a barrier's action",
    "def run(a):\n    pass\n" + ZERO,
    "def run(a):\n    a.wait()\n" + SQUARE,
    TH.format(call="run(threading.Barrier(1, action=lambda: look(3)))"),
)
either(
    "a namespace's function that is overwritten by None",
    "def run(a):\n    try:\n        a.func = None\n    except AttributeError:\n        pass\n"
    + ZERO,
    "def run(a):\n    a.func(3)\n" + SQUARE,
    TH.format(call="a = argparse.Namespace(func=look)\n    run(a)\n    if a.func: a.func(3)"),
)
AS = "import asyncio, functools\nfrom solution import f, run\n\nasync def look(n):\n    await asyncio.sleep(0)\n    assert await f(n) == n * n\n\ndef test_look():\n    async def main():\n        assert await f(0) == 0\n        {call}\n    asyncio.run(main())\n"
AZ = "import asyncio\nasync def f(x):\n    return 0\n"
AQ = "import asyncio\nasync def f(x):\n    return x * x\n"
for name, lie, honest, call in (
    (
        "wait_for in a task, cancelled",
        "async def run(t):\n    t.cancel()\n",
        "async def run(t):\n    await t\n",
        "await run(asyncio.create_task(asyncio.wait_for(look(3), 5)))",
    ),
    (
        "wait_for itself, forgotten",
        "async def run(t):\n    t.close()\n",
        "async def run(t):\n    await t\n",
        "await run(asyncio.wait_for(look(3), 5))",
    ),
    (
        "gather, cancelled",
        "async def run(t):\n    t.cancel()\n",
        "async def run(t):\n    await t\n",
        "await run(asyncio.gather(look(3), look(4)))",
    ),
    (
        "shield, cancelled, then closed loop",
        "async def run(t):\n    t.cancel()\n",
        "async def run(t):\n    await t\n",
        "await run(asyncio.shield(asyncio.ensure_future(look(3))))",
    ),
    (
        "gather that returns its errors",
        "async def run(t):\n    await t\n",
        "async def run(t):\n    await t\n",
        "await run(asyncio.gather(look(3), return_exceptions=True))",
    ),
    (
        "a task in a task",
        "async def run(t):\n    t.cancel()\n",
        "async def run(t):\n    await t\n",
        "inner = asyncio.create_task(look(3))\n        async def outer():\n            await inner\n        await run(asyncio.create_task(outer()))",
    ),
    (
        "a coroutine compared, then closed",
        "async def run(t):\n    h = t.cr_frame.f_locals['item']\n    try:\n        _peer().ask('eq', h, h)\n    except Exception:\n        pass\n    t.close()\n"
        + ASKS,
        "async def run(t):\n    await t\n",
        "await run(look(3))",
    ),
    (
        "a coroutine given to an own callback and closed",
        "async def run(t, g):\n    g(t)\n    t.close()\n",
        "async def run(t, g):\n    g(1)\n    await t\n",
        "await run(look(3), lambda x: None)",
    ),
    (
        "a task whose name is read, forgotten behind sleep",
        "async def run(t):\n    t.get_name()\n    t.cancel()\n",
        "async def run(t):\n    await t\n",
        "t = asyncio.create_task(look(3))\n        await run(t)",
    ),
    (
        "a future that gets a result in place of a task",
        "async def run(t):\n    t.set_result(1)\n",
        "async def run(t):\n    await asyncio.sleep(0)\n",
        "loop = asyncio.get_running_loop()\n        t = loop.create_future()\n        t.add_done_callback(lambda t: None)\n        await run(t)\n        await look(3)",
    ),
    (
        "taskgroup left",
        "async def run(tg):\n    pass\n",
        "async def run(tg):\n    tg.create_task(asyncio.sleep(0))\n",
        "async with asyncio.timeout(3):\n            await look(3)",
    ),
):
    either("async: " + name, AZ + lie, AQ + honest, AS.format(call=call))
either(
    "callback: timer handle cancelled",
    AZ
    + "async def run(t):\n    try:\n        t.cancel()\n    except AttributeError:\n        pass\n",
    AQ + "async def run(t):\n    pass\n",
    AS.format(
        call="def cb():\n            asyncio.ensure_future(look(3))\n        h = asyncio.get_running_loop().call_later(0.01, cb)\n        await run(h)\n        await asyncio.sleep(0.1)"
    ),
)
for name, lie, honest, call in (
    (
        "shield of wait_for",
        "t.cancel()",
        "await t",
        "await run(asyncio.shield(asyncio.wait_for(look(3), 4)))",
    ),
    (
        "gather of shields",
        "t.cancel()",
        "await t",
        "await run(asyncio.gather(asyncio.shield(look(3))))",
    ),
    (
        "a coroutine with a coroutine in its list",
        "t.close()",
        "await t",
        "async def all_(l):\n            for c in l:\n                await c\n        await run(all_([look(3)]))",
    ),
    (
        "a coroutine with one in a dict",
        "t.close()",
        "await t",
        "async def all_(l):\n            for c in l.values():\n                await c\n        await run(all_({'a': look(3)}))",
    ),
    (
        "a task of a function that makes it",
        "t.cancel()",
        "await t",
        "async def go():\n            await look(3)\n        await run(asyncio.create_task(go()))",
    ),
    (
        "a task of a function given to it",
        "t.cancel()",
        "await t",
        "async def go(fn):\n            await fn(3)\n        await run(asyncio.create_task(go(look)))",
    ),
    (
        "a task of a partial",
        "t.cancel()",
        "await t",
        "async def go(fn):\n            await fn()\n        await run(asyncio.create_task(go(functools.partial(look, 3))))",
    ),
):
    code, right = f"async def run(t):\n    {lie}\n", f"async def run(t):\n    {honest}\n"
    either("async: " + name, AZ + code, AQ + right, AS.format(call=call))
