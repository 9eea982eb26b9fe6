"""Honest programs: MBPP, HumanEval, EvalPlus, APPS and LiveCodeBench, and their usual subjects."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

import json
from typing import Any

from attacks.program import Program, shape

__all__ = ["CHECKED"]

# The comparison that EvalPlus's tests contain, without numpy.
ASSERTION = """
def is_floats(x) -> bool:
    if isinstance(x, float):
        return True
    if isinstance(x, (list, tuple)) and x:
        return all(isinstance(i, float) for i in x)
    return False

def assertion(out, exp, atol):
    exact_match = out == exp
    if atol == 0 and is_floats(exp):
        atol = 1e-6
    if not exact_match and atol != 0:
        assert type(out) == type(exp)
        if isinstance(exp, (list, tuple)):
            assert len(out) == len(exp)
            assert all(abs(a - b) <= atol + 1e-07 * abs(b) for a, b in zip(out, exp))
        else:
            assert abs(out - exp) <= atol + 1e-07 * abs(exp)
    else:
        assert exact_match
"""


def plus(
    name: str, code: str, inputs: list[object], reference: str, entry: str, atol: float = 0
) -> Program:
    """EvalPlus' shape: inputs, and results from a reference within the tests."""
    namespace: dict[str, Any] = {}
    exec(reference, namespace)
    results = [namespace["ref"](*json.loads(json.dumps(i))) for i in inputs]
    test = f"{ASSERTION}\ndef check(candidate):\n    inputs = {inputs!r}\n    results = {results!r}\n    for i, (inp, exp) in enumerate(zip(inputs, results)):\n        assertion(candidate(*inp), exp, {atol})\n"
    return shape(f"EvalPlus: {name}", code, test=test, entry_point=entry)


def check(name: str, code: str, body: str, entry: str, prompt: str = "", head: str = "") -> Program:
    """HumanEval's shape: `check(candidate)`, maybe with a prompt that the code goes on from."""
    lines = "\n".join("    " + line if line else "" for line in body.splitlines())
    more = {"prompt": prompt} if prompt else {}
    return shape(
        f"HumanEval: {name}",
        code,
        test=f"{head}\n\ndef check(candidate):\n{lines}\n",
        entry_point=entry,
        **more,
    )


def stdin(name: str, code: str, *cases: tuple[str, str]) -> Program:
    pairs = {"inputs": [given for given, _ in cases], "outputs": [wanted for _, wanted in cases]}
    return shape(f"APPS: {name}", code, input_output=pairs)


_ = shape
CHECKED = [
    plus("floats within lists", "def f(xs):\n    m = sum(xs) / len(xs)\n    return [x - m for x in xs]\n", [[[1.0, 2.0, 4.0]], [[0.1, 0.2]]], "def ref(xs):\n    return [x - sum(xs) / len(xs) for x in xs]", "f"),
    plus("a float", "def f(a, b):\n    return (a * a + b * b) ** 0.5\n", [[3, 4], [1, 1], [0, 0]], "import math\ndef ref(a, b):\n    return math.hypot(a, b)", "f"),
    plus("tuples", "def f(s):\n    return (s.upper(), len(s))\n", [["abc"], [""], ["é🙂"]], "def ref(s):\n    return (s.upper(), len(s))", "f"),
    plus("a thousand inputs", "def f(n):\n    return bin(n).count('1')\n", [[n] for n in range(1000)], "def ref(n):\n    return sum(map(int, format(n, 'b')))", "f"),
    plus("None and booleans", "def f(xs, k):\n    return xs.index(k) if k in xs else None\n", [[[1, 2], 2], [[1], 5], [[], 0]], "def ref(xs, k):\n    return next((i for i, x in enumerate(xs) if x == k), None)", "f"),
    plus("nested dicts", "def f(pairs):\n    out = {}\n    for k, v in pairs:\n        out.setdefault(k, {'n': 0, 'all': []})\n        out[k]['n'] += v\n        out[k]['all'].append(v)\n    return out\n", [[[["a", 1], ["b", 2], ["a", 3]]], [[]]], "def ref(pairs):\n    out = {}\n    for k, v in pairs:\n        out[k] = {'n': sum(w for l, w in pairs if l == k), 'all': [w for l, w in pairs if l == k]}\n    return out", "f"),
    plus("with a tolerance", "def f(n):\n    return sum(1 / k ** 2 for k in range(1, n))\n", [[10], [1000]], "def ref(n):\n    return sum(1 / k / k for k in range(1, n))", "f", 1e-6),
    _("EvalPlus: a reference within the test", "def f(xs):\n    return sorted(xs, key=lambda x: (sum(map(int, str(abs(x)))), x))\n",
      test=ASSERTION + "\nimport random\n\ndef ref(xs):\n    return sorted(sorted(xs), key=lambda x: sum(int(c) for c in str(x) if c.isdigit()))\n\ndef check(candidate):\n    rng = random.Random(1)\n    for _ in range(50):\n        xs = [rng.randrange(-99, 999) for _ in range(rng.randrange(9))]\n        assertion(candidate(list(xs)), ref(xs), 0)\n", entry_point="f"),
    _("EvalPlus: a comparison of sets", "def f(a, b):\n    return list(set(a) & set(b))\n",
      test="def check(candidate):\n    for a, b in [([1, 2], [2, 3]), ([], [1])]:\n        assert set(candidate(a, b)) == set(a) & set(b)\n        assert type(candidate(a, b)) == list\n", entry_point="f"),
    _("EvalPlus: inputs that must not change", "def f(xs):\n    return sorted(xs)\n",
      test="import copy\n\ndef check(candidate):\n    for xs in ([3, 1], [[2], [1]], []):\n        before = copy.deepcopy(xs)\n        assert candidate(xs) == sorted(before)\n        assert xs == before\n", entry_point="f"),
    # --- HumanEval ---
    check("assertions with messages", "def f(n):\n    return [i for i in range(2, n) if all(i % j for j in range(2, i))]\n", "assert candidate(10) == [2, 3, 5, 7], 'first'\nassert candidate(2) == [], f'edge: {candidate(2)}'\nassert len(candidate(100)) == 25\n", "f"),
    check("in a loop, with randomness", "def f(a, b):\n    while b: a, b = b, a % b\n    return a\n", "import math, random\nfor _ in range(100):\n    a, b = random.randrange(1, 999), random.randrange(1, 999)\n    assert candidate(a, b) == math.gcd(a, b), (a, b)\n", "f"),
    check("a tolerance", "def f(x):\n    return x % 1.0\n", "assert abs(candidate(3.5) - 0.5) < 1e-6\nassert abs(candidate(1.33) - 0.33) < 1e-6\nassert math.isclose(candidate(2.25), 0.25)\n", "f", head="import math"),
    check("the prompt goes on", "    out = []\n    for x in numbers:\n        out.append(max(out[-1] if out else x, x))\n    return out\n", "assert candidate([1, 3, 2, 5]) == [1, 3, 3, 5]\nassert candidate([]) == []\n", "rolling_max", "from typing import List\n\n\ndef rolling_max(numbers: List[int]) -> List[int]:\n    \"\"\" The running maximum. \"\"\"\n"),
    check("a helper of the prompt's, used by both", "    return is_even(n // 2) and is_even(n)\n", "for n in range(40):\n    assert candidate(n) == (is_even(n) and is_even(n // 2))\n", "twice_even", "def is_even(n):\n    return n % 2 == 0\n\n\ndef twice_even(n):\n"),
    check("a function as the argument", "def f(g, n):\n    for _ in range(n): g = (lambda h: lambda x: h(h(x)))(g)\n    return g\n", "double = candidate(lambda x: x + 1, 3)\nassert double(0) == 8 and double(10) == 18\n", "f"),
    check("exceptions", "def f(text):\n    try:\n        return int(text)\n    except ValueError:\n        raise ValueError(f'not a number: {text!r}') from None\n", "assert candidate('12') == 12\ntry:\n    candidate('x')\nexcept ValueError as e:\n    assert str(e) == \"not a number: 'x'\"\nelse:\n    assert False, 'no error'\n", "f"),
    check("encode and decode", "def encode(s):\n    return ''.join(chr(ord(c) + 3) for c in s)\n\ndef decode(s):\n    return ''.join(chr(ord(c) - 3) for c in s)\n", "from string import ascii_lowercase\nfor s in ('abc', ascii_lowercase):\n    assert candidate(encode(s)) == s\nassert candidate('def') == 'abc'\n", "decode"),
    check("results that are sorted first", "import itertools\ndef f(s):\n    return {''.join(p) for p in itertools.permutations(s)}\n", "assert sorted(candidate('abc')) == ['abc', 'acb', 'bac', 'bca', 'cab', 'cba']\nassert len(candidate('aab')) == 3 and 'aba' in candidate('aab')\n", "f"),
    check("a builder of checks", "def f(low, high):\n    def inside(x):\n        return low <= x <= high\n    inside.bounds = (low, high)\n    return inside\n", "g = candidate(2, 5)\nassert g(2) and g(5) and not g(6) and g.bounds == (2, 5)\nassert list(filter(g, range(9))) == [2, 3, 4, 5]\n", "f"),
    # --- MBPP ---
    _("MBPP: text", "import re\ndef snake(text):\n    return re.sub(r'(?<!^)(?=[A-Z])', '_', text).lower()\n", "assert snake('PythonProgram') == 'python_program'", "assert snake('x') == 'x'", "assert snake('') == ''"),
    _("MBPP: a set, in any order", "def common(a, b):\n    return tuple(set(a) & set(b))\n", "assert set(common((3, 4), (5, 4))) == {4}", "assert sorted(common((1, 2), (2, 1))) == [1, 2]"),
    _("MBPP: imports in the setup", "def volume(r):\n    return 4 / 3 * math.pi * r ** 3\n", "assert math.isclose(volume(10), 4188.790204786391, rel_tol=0.001)", "assert round(volume(1), 2) == 4.19", test_setup_code="import math"),
    _("MBPP: a max heap", "import heapq as hq\ndef largest(nums, n):\n    return hq.nlargest(n, nums)\ndef merge(*lists):\n    return list(hq.merge(*lists))\n", "assert largest([25, 35, 22], 2) == [35, 25]", "assert merge([1, 4], [2, 3]) == [1, 2, 3, 4]"),
    _("MBPP: lambdas and maps", "def powers(bases, index):\n    return list(map(pow, bases, index))\ndef keep(items, f=None):\n    return list(filter(f, items))\n", "assert powers([2, 3], [3, 2]) == [8, 9]", "assert keep([0, 1, '']) == [1] and keep([1, 2, 3], lambda x: x > 1) == [2, 3]"),
    _("MBPP: complex numbers", "import cmath\ndef polar(z):\n    return cmath.polar(z)\ndef conj(z):\n    return z.conjugate()\n", "assert polar(1j) == (1.0, 1.5707963267948966)", "assert conj(1 + 2j) == 1 - 2j and abs(conj(3 + 4j)) == 5"),
    # --- usual subjects of such programs ---
    _("about: datetime", "from datetime import date, datetime, timedelta, timezone\ndef age(born, today):\n    return today.year - born.year - ((today.month, today.day) < (born.month, born.day))\ndef weeks(start, n):\n    return [start + timedelta(weeks=k) for k in range(n)]\ndef stamp(s):\n    return datetime.fromisoformat(s).replace(tzinfo=timezone.utc)\n", "from datetime import date\nassert age(date(2000, 5, 5), date(2024, 5, 4)) == 23 and weeks(date(2024, 1, 1), 3)[-1] == date(2024, 1, 15)", "import datetime as dt\nassert stamp('2024-01-01T10:00').isoformat() == '2024-01-01T10:00:00+00:00' and stamp('2024-01-01').timestamp() == 1704067200.0 and isinstance(stamp('2024-01-01'), dt.datetime)"),
    _("about: Decimal and Fraction", "from decimal import ROUND_HALF_UP, Decimal\nfrom fractions import Fraction\ndef money(x):\n    return Decimal(str(x)).quantize(Decimal('0.01'), ROUND_HALF_UP)\ndef harmonic(n):\n    return sum((Fraction(1, k) for k in range(1, n + 1)), Fraction(0))\n", "from decimal import Decimal\nassert money(2.675) == Decimal('2.68') and str(money(3)) == '3.00' and isinstance(money(1), Decimal) and money(1) + 1 == 2", "from fractions import Fraction\nassert harmonic(3) == Fraction(11, 6) and harmonic(3).numerator == 11 and float(harmonic(2)) == 1.5"),
    _("about: regular expressions", "import re\nMAIL = re.compile(r'(?P<user>[\\w.]+)@(?P<host>\\w+\\.\\w+)')\ndef parse(text):\n    return MAIL.search(text)\ndef links(text):\n    return [m.groupdict() for m in MAIL.finditer(text)]\n", "m = parse('x a.b@c.de y')\nassert m.group('user') == 'a.b' and m.groups() == ('a.b', 'c.de') and m.start() == 2 and parse('none') is None", "assert links('a@b.c, d@e.f') == [{'user': 'a', 'host': 'b.c'}, {'user': 'd', 'host': 'e.f'}]"),
    _("about: memoize and closures", "def memoize(f):\n    cache = {}\n    def inner(*a):\n        if a not in cache: cache[a] = f(*a)\n        return cache[a]\n    inner.cache = cache\n    return inner\n@memoize\ndef fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)\ndef counter():\n    n = 0\n    def up(step=1):\n        nonlocal n\n        n += step\n        return n\n    def get(): return n\n    return up, get\n", "assert fib(80) == 23416728348467685 and (5,) in fib.cache and len(fib.cache) == 81", "up, get = counter()\nup(); up(4)\nassert get() == 5 and counter()[1]() == 0", "calls = []\n@memoize\ndef slow(n):\n    calls.append(n)\n    return -n\nassert [slow(1), slow(1)] == [-1, -1] and calls == [1]"),
    _("about: decorators with arguments", "import functools, time\ndef repeat(n):\n    def wrap(f):\n        @functools.wraps(f)\n        def inner(*a, **k): return [f(*a, **k) for _ in range(n)]\n        return inner\n    return wrap\ndef checked(*kinds):\n    def wrap(f):\n        def inner(*a):\n            for x, kind in zip(a, kinds):\n                if not isinstance(x, kind): raise TypeError(f'{x!r} is no {kind.__name__}')\n            return f(*a)\n        return inner\n    return wrap\n", "@repeat(3)\ndef hi(name): return 'hi ' + name\nassert hi('x') == ['hi x'] * 3 and hi.__name__ == 'hi'", "@checked(int, str)\ndef join(n, s): return s * n\nassert join(2, 'a') == 'aa'\ntry:\n    join('2', 'a')\n    assert False\nexcept TypeError as e:\n    assert str(e) == \"'2' is no int\""),
    _("about: generators and pipelines", "import itertools\ndef primes():\n    found = []\n    for n in itertools.count(2):\n        if all(n % p for p in found):\n            found.append(n)\n            yield n\ndef chunks(items, n):\n    it = iter(items)\n    while part := list(itertools.islice(it, n)): yield part\ndef flatten(x):\n    for y in x:\n        if isinstance(y, list): yield from flatten(y)\n        else: yield y\n", "import itertools\nassert list(itertools.islice(primes(), 5)) == [2, 3, 5, 7, 11] and next(primes()) == 2", "assert list(chunks(range(5), 2)) == [[0, 1], [2, 3], [4]] and list(flatten([1, [2, [3]], []])) == [1, 2, 3] and sum(flatten([[1], [2]])) == 3"),
    _("about: a coroutine with send", "def averager():\n    total = count = 0\n    average = None\n    while True:\n        got = yield average\n        if got is None: return\n        total, count = total + got, count + 1\n        average = total / count\n", "a = averager()\nnext(a)\nassert a.send(10) == 10 and a.send(20) == 15\ntry:\n    a.send(None)\n    assert False\nexcept StopIteration:\n    pass"),
    _("about: keys and comparators", "import functools\ndef by(*keys): return lambda item: tuple(item[k] for k in keys)\ndef compare(a, b): return (len(a) > len(b)) - (len(a) < len(b)) or (a > b) - (a < b)\ndef order(words): return sorted(words, key=functools.cmp_to_key(compare))\n", "rows = [{'a': 2, 'b': 1}, {'a': 1, 'b': 9}]\nassert sorted(rows, key=by('a', 'b'))[0]['b'] == 9 and max(rows, key=by('b')) == {'a': 1, 'b': 9}", "import functools\nassert order(['bb', 'a', 'aa']) == ['a', 'aa', 'bb'] and sorted(['bb', 'c'], key=functools.cmp_to_key(compare)) == ['c', 'bb']"),
    _("about: callbacks with state", "def walk(tree, visit, depth=0):\n    for name, kids in tree.items():\n        if visit(name, depth) is False: continue\n        walk(kids, visit, depth + 1)\n", "seen = []\ndef visit(name, depth):\n    seen.append((depth, name))\n    return name != 'skip'\nwalk({'a': {'b': {}}, 'skip': {'c': {}}}, visit)\nassert seen == [(0, 'a'), (1, 'b'), (0, 'skip')]"),
    _("about: a parser and an evaluator", "import operator, re\nOPS = {'+': (1, operator.add), '-': (1, operator.sub), '*': (2, operator.mul), '/': (2, operator.truediv)}\ndef evaluate(text):\n    out, ops = [], []\n    def apply():\n        b, a = out.pop(), out.pop()\n        out.append(OPS[ops.pop()][1](a, b))\n    for t in re.findall(r'\\d+\\.?\\d*|[-+*/()]', text):\n        if t[0].isdigit(): out.append(float(t))\n        elif t == '(': ops.append(t)\n        elif t == ')':\n            while ops[-1] != '(': apply()\n            ops.pop()\n        else:\n            while ops and ops[-1] != '(' and OPS[ops[-1]][0] >= OPS[t][0]: apply()\n            ops.append(t)\n    while ops: apply()\n    return out[0]\n", "assert evaluate('2 + 3 * (4 - 1)') == 11 and evaluate('8 / 4 / 2') == 1.0", "import random\nfor _ in range(20):\n    a, b, c = (random.randrange(1, 9) for _ in range(3))\n    assert abs(evaluate(f'{a}-{b}*{c}') - (a - b * c)) < 1e-9"),
    _("about: recursion and backtracking", "def queens(n):\n    out = []\n    def place(row, cols):\n        if row == n: out.append(cols)\n        for c in range(n):\n            if all(c != d and abs(c - d) != row - r for r, d in enumerate(cols)): place(row + 1, [*cols, c])\n    place(0, [])\n    return out\n", "def valid(board):\n    return len(set(board)) == len(board) and all(abs(a - b) != j - i for i, a in enumerate(board) for j, b in enumerate(board) if i < j)\nfound = queens(6)\nassert len(found) == 4 and all(map(valid, found)) and len({tuple(b) for b in found}) == 4"),
    _("about: JSON, CSV and text", "import csv, io, json\ndef rows(text): return list(csv.DictReader(io.StringIO(text)))\ndef dump(data): return json.dumps(data, sort_keys=True, indent=1)\ndef table(data):\n    w = max(len(k) for k in data)\n    return '\\n'.join(f'{k:<{w}} | {v:>6.2f}' for k, v in data.items())\n", "assert rows('a,b\\n1,2\\n') == [{'a': '1', 'b': '2'}] and [r['a'] for r in rows('a\\nx\\ny\\n')] == ['x', 'y']", "import json\nassert json.loads(dump({'b': [1], 'a': None})) == {'a': None, 'b': [1]} and dump({'b': 1, 'a': 2}).startswith('{\\n \"a\"') and table({'ab': 1, 'c': 22.5}) == 'ab |   1.00\\nc  |  22.50'"),
    _("about: bytes, bits and hashes", "import base64, hashlib, struct\ndef pack(*n): return struct.pack(f'>{len(n)}H', *n)\ndef digest(s): return hashlib.md5(s.encode()).hexdigest()\ndef b64(b): return base64.b64encode(b)\ndef view(b): return memoryview(b)[1:]\n", "assert pack(1, 258) == b'\\x00\\x01\\x01\\x02' and digest('a') == '0cc175b9c0f1b6a831c399e269772661' and b64(b'hi') == b'aGk=' and b64(b'').decode() == ''", "assert bytes(view(b'abc')) == b'bc' and len(view(b'abc')) == 2"),
    _("about: sets, views and ranges", "def views(d): return d.keys(), d.values(), d.items()\ndef evens(n): return range(0, n, 2)\ndef groups(words): return {frozenset(w): w for w in words}\n", "k, v, i = views({'a': 1, 'b': 2})\nassert k == {'a', 'b'} and sorted(v) == [1, 2] and ('a', 1) in i and len(k & {'a'}) == 1", "assert evens(6) == range(0, 6, 2) and list(evens(5)) == [0, 2, 4] and 4 in evens(6) and evens(10)[-1] == 8 and groups(['ab', 'ba', 'c']) == {frozenset('ab'): 'ba', frozenset('c'): 'c'}"),
    _("about: files and the command line", "import argparse, pathlib, tempfile\ndef parse(words):\n    p = argparse.ArgumentParser()\n    p.add_argument('name')\n    p.add_argument('-n', type=int, default=1)\n    return p.parse_args(words)\ndef roundtrip(text):\n    with tempfile.TemporaryDirectory() as d:\n        path = pathlib.Path(d, 'a', 'b.txt')\n        path.parent.mkdir()\n        path.write_text(text, encoding='utf-8')\n        return path.read_text(encoding='utf-8'), path.suffix, path.name\n", "a = parse(['x', '-n', '3'])\nassert a.name == 'x' and a.n == 3 and vars(parse(['y'])) == {'name': 'y', 'n': 1}", "assert roundtrip('é\\n') == ('é\\n', '.txt', 'b.txt')"),
    _("about: threads, locks and pools", "import threading, queue\nfrom concurrent.futures import ThreadPoolExecutor\nclass Safe:\n    def __init__(self): self.n, self.lock = 0, threading.Lock()\n    def up(self):\n        with self.lock: self.n += 1\ndef run(k):\n    safe = Safe()\n    with ThreadPoolExecutor(4) as pool:\n        for _ in range(k): pool.submit(safe.up)\n    return safe.n\ndef later(x): return ThreadPoolExecutor(1).submit(lambda: x * 2)\n", "assert run(200) == 200 and later(4).result() == 8 and later(1).result(timeout=1) == 2"),
    _("about: exceptions with a history", "class AppError(Exception):\n    code = 1\n    def __init__(self, message, **details):\n        super().__init__(message)\n        self.details = details\nclass NotFound(AppError):\n    code = 404\ndef find(d, k):\n    try:\n        return d[k]\n    except KeyError as e:\n        raise NotFound(f'no {k}', key=k) from e\n", "try:\n    find({}, 'x')\n    assert False\nexcept AppError as e:\n    assert isinstance(e, NotFound) and e.details == {'key': 'x'} and str(e) == 'no x' and e.args == ('no x',)", "assert issubclass(NotFound, AppError) and NotFound('m').code == 404 and repr(NotFound('m')).startswith('NotFound') and find({'x': 1}, 'x') == 1"),
    # --- standard input and output, and calls ---
    stdin("lines and words", "n = int(input())\nfor _ in range(n):\n    a, b = map(int, input().split())\n    print(a + b)\n", ("2\n1 2\n3 4\n", "3\n7\n"), ("1\n0 0\n", "0\n")),
    stdin("all of it at once", "import sys\ndata = sys.stdin.read().split()\nprint(len(data), max(map(len, data), default=0))\n", ("a bb ccc\n\nd\n", "4 3"), ("", "0 0")),
    stdin("open(0)", "print(sum(int(line) for line in open(0)))\n", ("1\n2\n3", "6\n")),
    stdin("input until the end", "total = 0\nwhile True:\n    try:\n        total += int(input())\n    except EOFError:\n        break\nprint(total)\n", ("1\n2\n", "3\n"), ("", "0")),
    stdin("a main guard, exit and threads", "import sys, threading\ndef main():\n    n = int(sys.stdin.readline())\n    print(*range(n), sep=',')\n    sys.exit()\nif __name__ == '__main__':\n    threading.stack_size(1 << 26)\n    sys.setrecursionlimit(1 << 20)\n    t = threading.Thread(target=main)\n    t.start()\n    t.join()\n", ("3\n", "0,1,2\n")),
    stdin("numbers with many digits", "from decimal import Decimal\nprint(f'{Decimal(input()).sqrt():.6f}')\nprint(2 ** 200)\n", ("2\n", "1.414214\n1606938044258990275541962092341162602522202993782792835301376\n")),
    stdin("a grid", "import sys\ngrid = [list(line.strip()) for line in sys.stdin]\nfor row in zip(*grid[::-1]):\n    print(''.join(row))\n", ("abc\ndef\n", "da\neb\nfc\n")),
    stdin("deep recursion", "import sys\nsys.setrecursionlimit(20000)\ndef f(n): return 0 if n == 0 else 1 + f(n - 1)\nprint(f(int(input())))\n", ("5000\n", "5000\n")),
    stdin("output by write, flushed late", "import sys, atexit\nout = []\natexit.register(lambda: sys.stdout.write('\\n'.join(out) + '\\n'))\nfor line in sys.stdin:\n    out.append(line.strip()[::-1])\n", ("ab\ncd\n", "ba\ndc\n")),
    stdin("noise on standard error", "import sys, warnings\nprint('debug', file=sys.stderr)\nwarnings.warn('x')\nprint(input().title())\n", ("ann lee\n", "Ann Lee\n")),
    _("APPS: lists of lines", "n = int(input())\nprint(sorted(input().split()))\n", input_output={"inputs": [["2", "b a"]], "outputs": [["['a', 'b']"]]}),
    _("APPS: call-based", "def total(items, start):\n    return sum(items) + start\n", input_output={"fn_name": "total", "inputs": [[[1, 2], 3], [[], 0]], "outputs": [6, 0]}),
    _("APPS: call-based, outputs in a list", "def split(s):\n    return s.split()\n", input_output={"fn_name": "split", "inputs": [["a b"], [""]], "outputs": [[["a", "b"]], [[]]]}),
    _("APPS: as JSON text, with a class", "class Solution:\n    def longest(self, s):\n        best, start, seen = 0, 0, {}\n        for i, c in enumerate(s):\n            start = max(start, seen.get(c, -1) + 1)\n            seen[c] = i\n            best = max(best, i - start + 1)\n        return best\n", input_output=json.dumps({"fn_name": "longest", "inputs": [["abcabcbb"], ["bbb"], [""]], "outputs": [3, 1, 0]})),
    _("LiveCodeBench: stdin", "a, b = map(int, input().split())\nprint('YES' if a % b == 0 else 'NO')\n", tests=[{"input": "6 3\n", "output": "YES\n", "testtype": "stdin"}, {"input": "7 3\n", "output": "NO\n", "testtype": "stdin"}]),
    _("LiveCodeBench: functional", "from typing import List\nclass Solution:\n    def rotate(self, grid: List[List[int]]) -> List[List[int]]:\n        return [list(r) for r in zip(*grid[::-1])]\n", tests=[{"input": "[[1,2],[3,4]]", "output": "[[3,1],[4,2]]", "testtype": "functional"}], fn_name="rotate"),
    _("LiveCodeBench: functional, tuples and texts", "class Solution:\n    def pairs(self, s: str, k: int):\n        return [(c, s.count(c)) for c in sorted(set(s)) if s.count(c) >= k]\n", tests=[{"input": "\"aab\"\n1", "output": "[[\"a\", 2], [\"b\", 1]]", "testtype": "functional"}, {"input": "\"\"\n2", "output": "[]", "testtype": "functional"}], fn_name="pairs"),
    _("LiveCodeBench: floats and booleans", "class Solution:\n    def half(self, x: float) -> float:\n        return x / 2\n", tests=[{"input": "3.0", "output": "1.5", "testtype": "functional"}, {"input": "1", "output": "0.5", "testtype": "functional"}], fn_name="half"),
]  # fmt: skip
