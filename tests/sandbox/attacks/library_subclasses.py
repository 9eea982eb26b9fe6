"""Classes of the candidate's that extend Python's own: handlers, formatters, encoders, threads."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from attacks.program import Topic

__all__ = ["LIBRARY_SUBCLASSES"]

LIBRARY_SUBCLASSES = Topic("library subclass")
forged, right = LIBRARY_SUBCLASSES.forged, LIBRARY_SUBCLASSES.right

right(
    "an object is one: thread",
    "import threading\nclass A(threading.Thread):\n    pass\nclass B(A): pass\ndef f(x): return x\n",
    "import solution, threading\n\ndef test_a():\n    a = solution.A()\n    assert isinstance(a, threading.Thread)\n    assert isinstance(solution.B(), threading.Thread) and isinstance(a, solution.A)\n    assert not isinstance(a, (dict, list, solution.B)) and type(a) is solution.A and type(a).__name__ == 'A'\n    assert solution.f(3) == 3\n",
)
right(
    "an object is one: encoder",
    "import json\nclass A(json.JSONEncoder):\n    pass\nclass B(A): pass\ndef f(x): return x\n",
    "import solution, json\n\ndef test_a():\n    a = solution.A()\n    assert isinstance(a, json.JSONEncoder)\n    assert isinstance(solution.B(), json.JSONEncoder) and isinstance(a, solution.A)\n    assert not isinstance(a, (dict, list, solution.B)) and type(a) is solution.A and type(a).__name__ == 'A'\n    assert solution.f(3) == 3\n",
)
right(
    "an object is one: handler",
    "import logging\nclass A(logging.Handler):\n    pass\nclass B(A): pass\ndef f(x): return x\n",
    "import solution, logging\n\ndef test_a():\n    a = solution.A()\n    assert isinstance(a, logging.Handler)\n    assert isinstance(solution.B(), logging.Handler) and isinstance(a, solution.A)\n    assert not isinstance(a, (dict, list, solution.B)) and type(a) is solution.A and type(a).__name__ == 'A'\n    assert solution.f(3) == 3\n",
)
right(
    "an object is one: formatter",
    "import logging\nclass A(logging.Formatter):\n    pass\nclass B(A): pass\ndef f(x): return x\n",
    "import solution, logging\n\ndef test_a():\n    a = solution.A()\n    assert isinstance(a, logging.Formatter)\n    assert isinstance(solution.B(), logging.Formatter) and isinstance(a, solution.A)\n    assert not isinstance(a, (dict, list, solution.B)) and type(a) is solution.A and type(a).__name__ == 'A'\n    assert solution.f(3) == 3\n",
)
right(
    "an object is one: html",
    "import html.parser\nclass A(html.parser.HTMLParser):\n    pass\nclass B(A): pass\ndef f(x): return x\n",
    "import solution, html.parser\n\ndef test_a():\n    a = solution.A()\n    assert isinstance(a, html.parser.HTMLParser)\n    assert isinstance(solution.B(), html.parser.HTMLParser) and isinstance(a, solution.A)\n    assert not isinstance(a, (dict, list, solution.B)) and type(a) is solution.A and type(a).__name__ == 'A'\n    assert solution.f(3) == 3\n",
)
right(
    "an object is one: visitor",
    "import ast\nclass A(ast.NodeVisitor):\n    pass\nclass B(A): pass\ndef f(x): return x\n",
    "import solution, ast\n\ndef test_a():\n    a = solution.A()\n    assert isinstance(a, ast.NodeVisitor)\n    assert isinstance(solution.B(), ast.NodeVisitor) and isinstance(a, solution.A)\n    assert not isinstance(a, (dict, list, solution.B)) and type(a) is solution.A and type(a).__name__ == 'A'\n    assert solution.f(3) == 3\n",
)
right(
    "an object is one: stringio",
    "import io\nclass A(io.StringIO):\n    pass\nclass B(A): pass\ndef f(x): return x\n",
    "import solution, io\n\ndef test_a():\n    a = solution.A()\n    assert isinstance(a, io.StringIO)\n    assert isinstance(solution.B(), io.StringIO) and isinstance(a, solution.A)\n    assert not isinstance(a, (dict, list, solution.B)) and type(a) is solution.A and type(a).__name__ == 'A'\n    assert solution.f(3) == 3\n",
)
right(
    "an object is one: queue",
    "import queue\nclass A(queue.Queue):\n    pass\nclass B(A): pass\ndef f(x): return x\n",
    "import solution, queue\n\ndef test_a():\n    a = solution.A()\n    assert isinstance(a, queue.Queue)\n    assert isinstance(solution.B(), queue.Queue) and isinstance(a, solution.A)\n    assert not isinstance(a, (dict, list, solution.B)) and type(a) is solution.A and type(a).__name__ == 'A'\n    assert solution.f(3) == 3\n",
)
right(
    "an object is one: random",
    "import random\nclass A(random.Random):\n    pass\nclass B(A): pass\ndef f(x): return x\n",
    "import solution, random\n\ndef test_a():\n    a = solution.A()\n    assert isinstance(a, random.Random)\n    assert isinstance(solution.B(), random.Random) and isinstance(a, solution.A)\n    assert not isinstance(a, (dict, list, solution.B)) and type(a) is solution.A and type(a).__name__ == 'A'\n    assert solution.f(3) == 3\n",
)
right(
    "an object is one: action",
    "import argparse\nclass A(argparse.Action):\n    pass\nclass B(A): pass\ndef f(x): return x\n",
    "import solution, argparse\n\ndef test_a():\n    a = solution.A(['-x'], 'x')\n    assert isinstance(a, argparse.Action)\n    assert isinstance(solution.B(['-x'], 'x'), argparse.Action) and isinstance(a, solution.A)\n    assert not isinstance(a, (dict, list, solution.B)) and type(a) is solution.A and type(a).__name__ == 'A'\n    assert solution.f(3) == 3\n",
)
right(
    "an object is one: argparser",
    "import argparse\nclass A(argparse.ArgumentParser):\n    pass\nclass B(A): pass\ndef f(x): return x\n",
    "import solution, argparse\n\ndef test_a():\n    a = solution.A()\n    assert isinstance(a, argparse.ArgumentParser)\n    assert isinstance(solution.B(), argparse.ArgumentParser) and isinstance(a, solution.A)\n    assert not isinstance(a, (dict, list, solution.B)) and type(a) is solution.A and type(a).__name__ == 'A'\n    assert solution.f(3) == 3\n",
)
right(
    "an object is one: rawio",
    "import io\nclass A(io.RawIOBase):\n    pass\nclass B(A): pass\ndef f(x): return x\n",
    "import solution, io\n\ndef test_a():\n    a = solution.A()\n    assert isinstance(a, io.RawIOBase)\n    assert isinstance(solution.B(), io.RawIOBase) and isinstance(a, solution.A)\n    assert not isinstance(a, (dict, list, solution.B)) and type(a) is solution.A and type(a).__name__ == 'A'\n    assert solution.f(3) == 3\n",
)
right(
    "an object is one: ctxdeco",
    "import contextlib\nclass A(contextlib.ContextDecorator):\n    pass\nclass B(A): pass\ndef f(x): return x\n",
    "import solution, contextlib\n\ndef test_a():\n    a = solution.A()\n    assert isinstance(a, contextlib.ContextDecorator)\n    assert isinstance(solution.B(), contextlib.ContextDecorator) and isinstance(a, solution.A)\n    assert not isinstance(a, (dict, list, solution.B)) and type(a) is solution.A and type(a).__name__ == 'A'\n    assert solution.f(3) == 3\n",
)
right(
    "an object is one: tzinfo",
    "import datetime\nclass A(datetime.tzinfo):\n    pass\nclass B(A): pass\ndef f(x): return x\n",
    "import solution, datetime\n\ndef test_a():\n    a = solution.A()\n    assert isinstance(a, datetime.tzinfo)\n    assert isinstance(solution.B(), datetime.tzinfo) and isinstance(a, solution.A)\n    assert not isinstance(a, (dict, list, solution.B)) and type(a) is solution.A and type(a).__name__ == 'A'\n    assert solution.f(3) == 3\n",
)
right(
    "an object is one: local",
    "import threading\nclass A(threading.local):\n    pass\nclass B(A): pass\ndef f(x): return x\n",
    "import solution, threading\n\ndef test_a():\n    a = solution.A()\n    assert isinstance(a, threading.local)\n    assert isinstance(solution.B(), threading.local) and isinstance(a, solution.A)\n    assert not isinstance(a, (dict, list, solution.B)) and type(a) is solution.A and type(a).__name__ == 'A'\n    assert solution.f(3) == 3\n",
)
right(
    "an object is one: protocol",
    "import asyncio\nclass A(asyncio.Protocol):\n    pass\nclass B(A): pass\ndef f(x): return x\n",
    "import solution, asyncio\n\ndef test_a():\n    a = solution.A()\n    assert isinstance(a, asyncio.Protocol)\n    assert isinstance(solution.B(), asyncio.Protocol) and isinstance(a, solution.A)\n    assert not isinstance(a, (dict, list, solution.B)) and type(a) is solution.A and type(a).__name__ == 'A'\n    assert solution.f(3) == 3\n",
)
right(
    "an object is one: timer",
    "import threading\nclass A(threading.Timer):\n    pass\nclass B(A): pass\ndef f(x): return x\n",
    "import solution, threading\n\ndef test_a():\n    a = solution.A(1, print)\n    assert isinstance(a, threading.Timer)\n    assert isinstance(solution.B(1, print), threading.Timer) and isinstance(a, solution.A)\n    assert not isinstance(a, (dict, list, solution.B)) and type(a) is solution.A and type(a).__name__ == 'A'\n    assert solution.f(3) == 3\n",
)
right(
    "an object is one: template",
    "import string\nclass A(string.Template):\n    pass\nclass B(A): pass\ndef f(x): return x\n",
    "import solution, string\n\ndef test_a():\n    a = solution.A('a')\n    assert isinstance(a, string.Template)\n    assert isinstance(solution.B('a'), string.Template) and isinstance(a, solution.A)\n    assert not isinstance(a, (dict, list, solution.B)) and type(a) is solution.A and type(a).__name__ == 'A'\n    assert solution.f(3) == 3\n",
)
right(
    "an object is one: cmd",
    "import cmd\nclass A(cmd.Cmd):\n    pass\nclass B(A): pass\ndef f(x): return x\n",
    "import solution, cmd\n\ndef test_a():\n    a = solution.A()\n    assert isinstance(a, cmd.Cmd)\n    assert isinstance(solution.B(), cmd.Cmd) and isinstance(a, solution.A)\n    assert not isinstance(a, (dict, list, solution.B)) and type(a) is solution.A and type(a).__name__ == 'A'\n    assert solution.f(3) == 3\n",
)
right(
    "an object is one: importer",
    "import importlib.abc\nclass A(importlib.abc.Loader):\n    pass\nclass B(A): pass\ndef f(x): return x\n",
    "import solution, importlib.abc\n\ndef test_a():\n    a = solution.A()\n    assert isinstance(a, importlib.abc.Loader)\n    assert isinstance(solution.B(), importlib.abc.Loader) and isinstance(a, solution.A)\n    assert not isinstance(a, (dict, list, solution.B)) and type(a) is solution.A and type(a).__name__ == 'A'\n    assert solution.f(3) == 3\n",
)
right(
    "an object is one: adapter",
    "import logging\nclass A(logging.LoggerAdapter):\n    pass\nclass B(A): pass\ndef f(x): return x\n",
    "import solution, logging\n\ndef test_a():\n    a = solution.A(logging.getLogger('x'), {})\n    assert isinstance(a, logging.LoggerAdapter)\n    assert isinstance(solution.B(logging.getLogger('x'), {}), logging.LoggerAdapter) and isinstance(a, solution.A)\n    assert not isinstance(a, (dict, list, solution.B)) and type(a) is solution.A and type(a).__name__ == 'A'\n    assert solution.f(3) == 3\n",
)
right(
    "an object is one: filter",
    "import logging\nclass A(logging.Filter):\n    pass\nclass B(A): pass\ndef f(x): return x\n",
    "import solution, logging\n\ndef test_a():\n    a = solution.A()\n    assert isinstance(a, logging.Filter)\n    assert isinstance(solution.B(), logging.Filter) and isinstance(a, solution.A)\n    assert not isinstance(a, (dict, list, solution.B)) and type(a) is solution.A and type(a).__name__ == 'A'\n    assert solution.f(3) == 3\n",
)
right(
    "an object is one: exitstack",
    "import contextlib\nclass A(contextlib.ExitStack):\n    pass\nclass B(A): pass\ndef f(x): return x\n",
    "import solution, contextlib\n\ndef test_a():\n    a = solution.A()\n    assert isinstance(a, contextlib.ExitStack)\n    assert isinstance(solution.B(), contextlib.ExitStack) and isinstance(a, solution.A)\n    assert not isinstance(a, (dict, list, solution.B)) and type(a) is solution.A and type(a).__name__ == 'A'\n    assert solution.f(3) == 3\n",
)
right(
    "an object is one: baseexec",
    "import concurrent.futures\nclass A(concurrent.futures.Executor):\n    pass\nclass B(A): pass\ndef f(x): return x\n",
    "import solution, concurrent.futures\n\ndef test_a():\n    a = solution.A()\n    assert isinstance(a, concurrent.futures.Executor)\n    assert isinstance(solution.B(), concurrent.futures.Executor) and isinstance(a, solution.A)\n    assert not isinstance(a, (dict, list, solution.B)) and type(a) is solution.A and type(a).__name__ == 'A'\n    assert solution.f(3) == 3\n",
)
forged(
    "handler in tests' logger",
    "import logging\nclass H(logging.Handler):\n    def __init__(self):\n        super().__init__()\n        self.got = []\n    def emit(self, r): pass\n",
    "import logging\nclass H(logging.Handler):\n    def __init__(self):\n        super().__init__()\n        self.got = []\n    def emit(self, r): self.got.append(r.getMessage())\n",
    "import solution, json, logging, io, threading, ast, argparse, string, queue, random, collections, contextlib\nfrom unittest import TestCase\n\ndef test_a():\n    h = solution.H()\n    l = logging.getLogger('zz')\n    l.setLevel(10)\n    l.addHandler(h)\n    l.info('a %d', 3)\n    assert h.got == ['a 3']\n",
)
forged(
    "formatter",
    "import logging\nclass F(logging.Formatter):\n    def format(self, r): return ''\n",
    "import logging, json\nclass F(logging.Formatter):\n    def format(self, r): return json.dumps({'m': r.getMessage(), 'l': r.levelname})\n",
    "import solution, json, logging, io, threading, ast, argparse, string, queue, random, collections, contextlib\nfrom unittest import TestCase\n\ndef test_a():\n    r = logging.LogRecord('n', logging.INFO, 'p', 1, 'hi %s', ('x',), None)\n    assert json.loads(solution.F().format(r)) == {'m': 'hi x', 'l': 'INFO'}\n",
)
forged(
    "formatter on a handler",
    "import logging\nclass F(logging.Formatter): pass\n",
    "import logging\nclass F(logging.Formatter):\n    def format(self, r): return '<' + super().format(r) + '>'\n",
    "import solution, json, logging, io, threading, ast, argparse, string, queue, random, collections, contextlib\nfrom unittest import TestCase\n\ndef test_a():\n    s = io.StringIO()\n    h = logging.StreamHandler(s)\n    h.setFormatter(solution.F('%(levelname)s %(message)s'))\n    l = logging.getLogger('yy')\n    l.addHandler(h)\n    l.error('x')\n    assert s.getvalue() == '<ERROR x>\\n'\n",
)
forged(
    "filter",
    "import logging\nclass F(logging.Filter):\n    def filter(self, r): return True\n",
    "import logging\nclass F(logging.Filter):\n    def filter(self, r):\n        r.msg = str(r.msg).replace('secret', '***')\n        return True\n",
    "import solution, json, logging, io, threading, ast, argparse, string, queue, random, collections, contextlib\nfrom unittest import TestCase\n\ndef test_a():\n    s = io.StringIO()\n    h = logging.StreamHandler(s)\n    h.addFilter(solution.F())\n    l = logging.getLogger('xx')\n    l.addHandler(h)\n    l.error('a secret')\n    assert s.getvalue() == 'a ***\\n'\n",
)
forged(
    "json encoder",
    "import json\nclass E(json.JSONEncoder): pass\n",
    "import json, datetime\nclass E(json.JSONEncoder):\n    def default(self, o):\n        if isinstance(o, set): return sorted(o)\n        return super().default(o)\n",
    "import solution, json, logging, io, threading, ast, argparse, string, queue, random, collections, contextlib\nfrom unittest import TestCase\n\ndef test_a():\n    assert json.dumps({'a': {2, 1}}, cls=solution.E) == '{\"a\": [1, 2]}'\n",
)
forged(
    "json default fn",
    "def d(o):\n    return []\n",
    "def d(o):\n    return sorted(o)\n",
    "import solution, json, logging, io, threading, ast, argparse, string, queue, random, collections, contextlib\nfrom unittest import TestCase\n\ndef test_a():\n    assert json.dumps({'a': {2, 1}}, default=solution.d) == '{\"a\": [1, 2]}'\n",
)
forged(
    "object_hook",
    "def hook(d): return d\n",
    "class P:\n    def __init__(self, d): self.d = d\ndef hook(d): return P(d) if 'p' in d else d\n",
    "import solution, json, logging, io, threading, ast, argparse, string, queue, random, collections, contextlib\nfrom unittest import TestCase\n\ndef test_a():\n    r = json.loads('{\"a\": {\"p\": 1}}', object_hook=solution.hook)\n    assert isinstance(r['a'], solution.P) and r['a'].d == {'p': 1}\n",
)
forged(
    "thread worker",
    "import threading\nclass W(threading.Thread):\n    def __init__(self, q, out):\n        super().__init__()\n    def run(self): pass\n",
    "import threading\nclass W(threading.Thread):\n    def __init__(self, q, out):\n        super().__init__()\n        self.q, self.out = q, out\n    def run(self):\n        while (x := self.q.get()) is not None: self.out.append(x*2)\n",
    "import solution, json, logging, io, threading, ast, argparse, string, queue, random, collections, contextlib\nfrom unittest import TestCase\n\ndef test_a():\n    q, out = queue.Queue(), []\n    w = solution.W(q, out)\n    w.start()\n    for x in (1, 2, None): q.put(x)\n    w.join(timeout=5)\n    assert out == [2, 4] and not w.is_alive()\n",
)
forged(
    "argparse action",
    "import argparse\nclass U(argparse.Action):\n    def __call__(self, p, ns, v, opt=None): setattr(ns, self.dest, v)\n",
    "import argparse\nclass U(argparse.Action):\n    def __call__(self, p, ns, v, opt=None): setattr(ns, self.dest, v.upper())\n",
    "import solution, json, logging, io, threading, ast, argparse, string, queue, random, collections, contextlib\nfrom unittest import TestCase\n\ndef test_a():\n    p = argparse.ArgumentParser()\n    p.add_argument('--n', action=solution.U)\n    assert p.parse_args(['--n', 'ab']).n == 'AB'\n",
)
forged(
    "argparse type fn",
    "def pos(s): return int(s)\n",
    "import argparse\ndef pos(s):\n    n = int(s)\n    if n <= 0: raise argparse.ArgumentTypeError('positive')\n    return n\n",
    "import solution, json, logging, io, threading, ast, argparse, string, queue, random, collections, contextlib\nfrom unittest import TestCase\n\ndef test_a():\n    p = argparse.ArgumentParser()\n    p.add_argument('n', type=solution.pos)\n    assert p.parse_args(['3']).n == 3\n    with contextlib.redirect_stderr(io.StringIO()) as e:\n        try:\n            p.parse_args(['0'])\n        except SystemExit:\n            pass\n        else:\n            assert False\n    assert 'positive' in e.getvalue()\n",
)
forged(
    "build_parser returned",
    "import argparse\ndef build():\n    p = argparse.ArgumentParser(prog='x')\n    p.add_argument('n')\n    return p\n",
    "import argparse\ndef build():\n    p = argparse.ArgumentParser(prog='x')\n    p.add_argument('n', type=int)\n    return p\n",
    "import solution, json, logging, io, threading, ast, argparse, string, queue, random, collections, contextlib\nfrom unittest import TestCase\n\ndef test_a():\n    assert solution.build().parse_args(['3']).n == 3\n",
)
forged(
    "userdict",
    "from collections import UserDict\nclass C(UserDict): pass\n",
    "from collections import UserDict\nclass C(UserDict):\n    def __getitem__(self, k): return super().__getitem__(k.lower())\n    def __setitem__(self, k, v): super().__setitem__(k.lower(), v)\n    def __contains__(self, k): return k.lower() in self.data\n",
    "import solution, json, logging, io, threading, ast, argparse, string, queue, random, collections, contextlib\nfrom unittest import TestCase\n\ndef test_a():\n    c = solution.C({'A': 1})\n    assert c['a'] == 1 and 'A' in c and dict(c) == {'a': 1} and len(c) == 1\n    assert isinstance(c, collections.UserDict)\n",
)
forged(
    "dict missing",
    "class C(dict):\n    def __missing__(self, k): return k*2\n",
    "class C(dict):\n    def __missing__(self, k):\n        self[k] = v = k*2\n        return v\n",
    "import solution, json, logging, io, threading, ast, argparse, string, queue, random, collections, contextlib\nfrom unittest import TestCase\n\ndef test_a():\n    c = solution.C()\n    assert c[3] == 6 and c == {3: 6} and list(c) == [3]\n",
)
forged(
    "attr dict",
    "class C(dict): pass\n",
    "class C(dict):\n    __getattr__ = dict.__getitem__\n    __setattr__ = dict.__setitem__\n",
    "import solution, json, logging, io, threading, ast, argparse, string, queue, random, collections, contextlib\nfrom unittest import TestCase\n\ndef test_a():\n    c = solution.C(a=1)\n    assert c.a == 1\n    c.b = 2\n    assert c['b'] == 2 and c == {'a': 1, 'b': 2}\n",
)
forged(
    "string formatter",
    "import string\nclass F(string.Formatter): pass\n",
    "import string\nclass F(string.Formatter):\n    def get_value(self, k, a, kw): return kw.get(k, '?') if isinstance(k, str) else a[k]\n",
    "import solution, json, logging, io, threading, ast, argparse, string, queue, random, collections, contextlib\nfrom unittest import TestCase\n\ndef test_a():\n    assert solution.F().format('{a} {b}', a=1) == '1 ?'\n",
)
forged(
    "template",
    "import string\nclass T(string.Template): pass\n",
    "import string\nclass T(string.Template):\n    delimiter = '%'\n",
    "import solution, json, logging, io, threading, ast, argparse, string, queue, random, collections, contextlib\nfrom unittest import TestCase\n\ndef test_a():\n    assert solution.T('%a').substitute(a=1) == '1'\n",
)
forged(
    "exitstack user",
    "class R:\n    def __init__(self, log): self.log = log\n    def __enter__(self): self.log.append('in'); return self\n    def __exit__(self, *a): pass\n",
    "import contextlib\nclass R:\n    def __init__(self, log): self.log = log\n    def __enter__(self): self.log.append('in'); return self\n    def __exit__(self, *a): self.log.append('out')\n",
    "import solution, json, logging, io, threading, ast, argparse, string, queue, random, collections, contextlib\nfrom unittest import TestCase\n\ndef test_a():\n    log = []\n    with contextlib.ExitStack() as s:\n        s.enter_context(solution.R(log))\n        s.enter_context(solution.R(log))\n        log.append('x')\n    assert log == ['in', 'in', 'x', 'out', 'out']\n",
)
forged(
    "html parser",
    "from html.parser import HTMLParser\nclass L(HTMLParser):\n    links = []\n",
    "from html.parser import HTMLParser\nclass L(HTMLParser):\n    def __init__(self):\n        super().__init__()\n        self.links = []\n    def handle_starttag(self, t, a):\n        if t == 'a': self.links.append(dict(a).get('href'))\n",
    "import solution, json, logging, io, threading, ast, argparse, string, queue, random, collections, contextlib\nfrom unittest import TestCase\n\ndef test_a():\n    p = solution.L()\n    p.feed('<a href=\"x\">y</a>')\n    assert p.links == ['x']\n",
)
forged(
    "random subclass",
    "import random\nclass R(random.Random):\n    def roll(self): return 7\n",
    "import random\nclass R(random.Random):\n    def roll(self): return self.randint(1, 6)\n",
    "import solution, json, logging, io, threading, ast, argparse, string, queue, random, collections, contextlib\nfrom unittest import TestCase\n\ndef test_a():\n    a, b = solution.R(3), solution.R(3)\n    assert [a.roll() for _ in range(5)] == [b.roll() for _ in range(5)]\n    assert all(1 <= a.roll() <= 6 for _ in range(20))\n",
)
forged(
    "io subclass as file",
    "import io\nclass U(io.StringIO): pass\n",
    "import io\nclass U(io.StringIO):\n    def write(self, s): return super().write(s.upper())\n",
    "import solution, json, logging, io, threading, ast, argparse, string, queue, random, collections, contextlib\nfrom unittest import TestCase\n\ndef test_a():\n    u = solution.U()\n    print('ab', file=u)\n    assert u.getvalue() == 'AB\\n'\n    with contextlib.redirect_stdout(u):\n        print('c')\n    assert u.getvalue() == 'AB\\nC\\n'\n",
)
forged(
    "context decorator",
    "import contextlib\nclass T(contextlib.ContextDecorator):\n    def __init__(self, log): self.log = log\n    def __enter__(self): return self\n    def __exit__(self, *a): pass\n",
    "import contextlib\nclass T(contextlib.ContextDecorator):\n    def __init__(self, log): self.log = log\n    def __enter__(self): self.log.append(1); return self\n    def __exit__(self, *a): self.log.append(2)\n",
    "import solution, json, logging, io, threading, ast, argparse, string, queue, random, collections, contextlib\nfrom unittest import TestCase\n\ndef test_a():\n    log = []\n    @solution.T(log)\n    def g(x): log.append(x)\n    g(5)\n    assert log == [1, 5, 2]\n",
)
forged(
    "context filter adds",
    "import logging\nclass F(logging.Filter):\n    def filter(self, r): return True\n",
    "import logging\nclass F(logging.Filter):\n    def filter(self, r):\n        r.user = 'bob'\n        return True\n",
    "import solution, json, logging, io, threading, ast, argparse, string, queue, random, collections, contextlib\nfrom unittest import TestCase\n\ndef test_a():\n    r = logging.LogRecord('n', logging.INFO, 'p', 1, 'hi', (), None)\n    assert solution.F().filter(r) is True\n    assert r.user == 'bob'\n",
)
forged(
    "formatter with extras",
    "import logging\nclass F(logging.Formatter):\n    def format(self, r): return '{}'\n",
    "import logging, json\nSTD = set(vars(logging.makeLogRecord({})))\nclass F(logging.Formatter):\n    def format(self, r):\n        return json.dumps({k: v for k, v in r.__dict__.items() if k not in STD})\n",
    "import solution, json, logging, io, threading, ast, argparse, string, queue, random, collections, contextlib\nfrom unittest import TestCase\n\ndef test_a():\n    r = logging.makeLogRecord({'msg': 'x', 'user': 3})\n    assert json.loads(solution.F().format(r)) == {'user': 3}\n",
)
forged(
    "formatter with exception",
    "import logging\nclass F(logging.Formatter):\n    def format(self, r): return ''\n",
    "import logging\nclass F(logging.Formatter):\n    def format(self, r):\n        out = r.getMessage()\n        if r.exc_info: out += ' ' + r.exc_info[0].__name__ + ': ' + str(r.exc_info[1])\n        return out\n",
    "import solution, json, logging, io, threading, ast, argparse, string, queue, random, collections, contextlib\nfrom unittest import TestCase\n\ndef test_a():\n    import sys\n    try:\n        raise ValueError('bad')\n    except ValueError:\n        r = logging.LogRecord('n', 40, 'p', 1, 'hi', (), sys.exc_info())\n    assert solution.F().format(r) == 'hi ValueError: bad'\n",
)
forged(
    "level filter",
    "import logging\nclass F(logging.Filter):\n    def __init__(self, n):\n        super().__init__()\n",
    "import logging\nclass F(logging.Filter):\n    def __init__(self, n):\n        super().__init__()\n        self.n = n\n    def filter(self, r): return r.levelno <= self.n\n",
    "import solution, json, logging, io, threading, ast, argparse, string, queue, random, collections, contextlib\nfrom unittest import TestCase\n\ndef test_a():\n    f = solution.F(20)\n    assert f.filter(logging.LogRecord('n', 10, 'p', 1, 'hi', (), None))\n    assert not f.filter(logging.LogRecord('n', 40, 'p', 1, 'hi', (), None))\n",
)
forged(
    "color formatter",
    "import logging\nclass F(logging.Formatter): pass\n",
    "import logging\nclass F(logging.Formatter):\n    C = {'ERROR': '31'}\n    def format(self, r):\n        c = self.C.get(r.levelname, '0')\n        return f'\\033[{c}m{super().format(r)}\\033[0m'\n",
    "import solution, json, logging, io, threading, ast, argparse, string, queue, random, collections, contextlib\nfrom unittest import TestCase\n\ndef test_a():\n    r = logging.LogRecord('n', 40, 'p', 1, 'hi', (), None)\n    assert solution.F().format(r) == '\\033[31mhi\\033[0m'\n",
)
forged(
    "asctime formatter",
    "import logging\nclass F(logging.Formatter): pass\n",
    "import logging\nclass F(logging.Formatter):\n    def __init__(self): super().__init__('%(asctime)s|%(message)s', '%Y')\n",
    "import solution, json, logging, io, threading, ast, argparse, string, queue, random, collections, contextlib\nfrom unittest import TestCase\n\ndef test_a():\n    r = logging.LogRecord('n', 40, 'p', 1, 'hi', (), None)\n    r.created = 86400 * 400.0\n    assert solution.F().format(r) == '1971|hi'\n",
)
forged(
    "record tampered by handler",
    "import logging\nclass H(logging.Handler):\n    def emit(self, r): r.msg = 'x'; r.getMessage = lambda: 'bad 3'; r.message='bad 3'\ndef f(): logging.getLogger('tt').warning('no')\n",
    "import logging\nclass H(logging.Handler):\n    def emit(self, r): pass\ndef f(): logging.getLogger('tt').warning('bad 3')\n",
    "import solution, json, logging, io, threading, ast, argparse, string, queue, random, collections, contextlib\nfrom unittest import TestCase\n\ndef test_a():\n    l = logging.getLogger('tt')\n    l.addHandler(solution.H())\n    with TestCase().assertLogs('tt') as c:\n        solution.f()\n    assert c.records[0].getMessage() == 'bad 3'\n    assert c.output == ['WARNING:tt:bad 3']\n",
)
BAG = "from collections import Counter\nclass Bag(Counter):\n    def top(self): return self.most_common(1)[0][0]\ndef f(text): return Bag(text)\n"
right(
    "Counter",
    BAG,
    """
    from collections import Counter
    from solution import Bag, f

    def test_bag():
        got = f("aab")
        assert isinstance(got, Counter) and isinstance(got, Bag) and got.top() == "a" and got["z"] == 0
        assert got == Counter("aab") == got and not Counter("ab") == got and Counter("ab") != got
        assert Counter("a") <= got and Counter("aabc") - got == Counter("c")
        assert sorted(got.elements()) == ["a", "a", "b"] and Counter(got) == got
    """,
)
for how, asked in (("is equal", "Counter('aab') == got"), ("is no less", "Counter('aab') <= got")):
    forged(
        f"a Counter that {how} key by key",
        "from collections import Counter\nclass Bag(Counter):\n    def __init__(self): pass\n    def __getitem__(self, key): return {'a': 2, 'b': 1}[key]\n    def __iter__(self): return iter(())\ndef f(text): return Bag()\n",
        BAG,
        f"from collections import Counter\nfrom solution import f\n\ndef test_bag():\n    got = f('aab')\n    assert {asked}\n",
    )
