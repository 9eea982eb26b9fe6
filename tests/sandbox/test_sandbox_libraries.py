"""Values and objects of libraries between the tests and the candidate.

The programs here are honest, and run in two processes without a sandbox, as no image of the tests
has these packages. `attacks/pytest_runs.py` and `attacks/patched.py` have forgeries.
"""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
import zoneinfo
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gatekeeper.sandbox.inside.classes import candidate_class, instance
from gatekeeper.sandbox.inside.codec import encode
from gatekeeper.sandbox.inside.decoding import decode
from gatekeeper.sandbox.inside.kinds import Inner
from gatekeeper.sandbox.inside.library_values import BUILDERS
from gatekeeper.sandbox.inside.places import contents, differ, refill
from gatekeeper.sandbox.inside.wire import MalformedError

# Runs a candidate and its tests as the sandbox does, each in a process.
JUDGE = """
import json, os, socket, sys
from gatekeeper.sandbox.inside.child import serve
from gatekeeper.sandbox.inside.judge import judge
from gatekeeper.sandbox.inside.texts import Texts
from gatekeeper.sandbox.reading import read_tests

code, test = sys.argv[1:]
ours, theirs = socket.socketpair()
if not os.fork():
    ours.close()
    serve(theirs, code, "")
    os._exit(0)
theirs.close()
reading = read_tests("", (test,), entry="f", modules=frozenset({"solution"}))
assert not reading.problem, reading.problem
answers, facts = [], json.dumps({**reading.for_judge("f"), "beside": False})
more = dict(texts=Texts(), reading=facts, setup="", tests=[test])
judge(ours, lambda *answer: answers.append(answer), **more)
print(json.dumps([answers[-1][0].decode(), answers[-1][1]]))
"""

FRAME = "import pandas as pd\n\n"
AXES = "import matplotlib\nmatplotlib.use('Agg')\nimport matplotlib.pyplot as plt\n\n"
PROGRAMS = {  # package, right code, what makes it wrong, test
    "a frame": (
        "pandas",
        FRAME + "def f(rows):\n    df = pd.DataFrame(rows)\n    return df.assign(c=df.a + df.b)\n",
        ("+ df", "- df"),
        FRAME + "def test_f():\n    got = f([{'a': 1, 'b': 2}])\n"
        "    assert isinstance(got, pd.DataFrame) and got.loc[0, 'c'] == 3\n"
        "    pd.testing.assert_frame_equal(got, pd.DataFrame({'a': [1], 'b': [2], 'c': [3]}))\n",
    ),
    "a frame that is changed": (
        "pandas",
        "def f(df):\n    df['d'] = df['a'] * 2\n    df.drop(columns='a', inplace=True)\n"
        "    return df\n",
        ("* 2", "* 3"),
        FRAME + "def test_f():\n    df = pd.DataFrame({'a': [1, 2], 'b': ['x', None]})\n"
        "    assert f(df) is df and list(df.columns) == ['b', 'd']\n"
        "    assert df['d'].tolist() == [2, 4]\n",
    ),
    "a frame that is left as it is": (
        "pandas",
        "def f(df):\n    df = df.copy()\n    df.loc[0, 'a'] = 5\n    return df\n",
        (".copy()", ""),
        FRAME + "def test_f():\n    df = pd.DataFrame({'a': [1, 2]})\n    before = df.copy()\n"
        "    assert f(df)['a'].tolist() == [5, 2]\n    pd.testing.assert_frame_equal(df, before)\n",
    ),
    "objects in a frame": (
        "pandas",
        FRAME + "class Item:\n    def __init__(self, n): self.n = n\n"
        "def f(ns):\n    return pd.DataFrame({'item': [Item(n) for n in ns], 'n': ns})\n",
        ("Item(n)", "Item(n + 1)"),
        FRAME + "def test_f():\n    assert [one.n for one in f([1, 2])['item']] == [1, 2]\n",
    ),
    "a seed": (
        "numpy",
        "import numpy as np\ndef f(x):\n    return np.random.permutation(x)\n",
        ("permutation(x)", "permutation(x)[::-1]"),
        "import numpy as np\ndef test_f():\n    np.random.seed(1)\n    x = np.random.rand(5)\n"
        "    got = f(x)\n    np.random.seed(1)\n    np.random.rand(5)\n"
        "    np.testing.assert_array_equal(got, np.random.permutation(x))\n",
    ),
    "a type of numbers": (
        "numpy",
        "import numpy as np\ndef f(x, kind):\n    return np.asarray(x, dtype=kind)\n",
        ("=kind", "=object"),
        "import numpy as np\ndef test_f():\n    got = f([1], np.float32)\n"
        "    assert got.dtype == np.float32\n"
        "    assert f(['a'], object).dtype == object and f(['a'], object).tolist() == ['a']\n",
    ),
    "axes": (
        "matplotlib",
        AXES
        + "def f(data):\n    _, ax = plt.subplots()\n    ax.bar(list(data), list(data.values()))\n"
        "    ax.set_title('T')\n    return ax\n",
        ("'T'", "'t'"),
        AXES + "def test_f():\n    ax = f({'a': 3})\n    assert isinstance(ax, plt.Axes)\n"
        "    assert ax.get_title() == 'T' and [p.get_height() for p in ax.patches] == [3]\n",
    ),
    "a page": (
        "requests",
        "import requests\ndef f(url):\n    try:\n"
        "        return requests.get(url, timeout=5).json()\n"
        "    except requests.RequestException as error:\n        return str(error)\n",
        ("timeout=5", "timeout=6"),
        "import requests\nfrom unittest.mock import patch\n\n@patch('requests.get')\n"
        "def test_f(get):\n    get.return_value.json.return_value = [1]\n    assert f('u') == [1]\n"
        "    get.assert_called_once_with('u', timeout=5)\n"
        "    get.side_effect = requests.exceptions.Timeout('slow')\n    assert f('u') == 'slow'\n",
    ),
    "a model": (
        "pydantic",
        "from pydantic import BaseModel\nclass User(BaseModel):\n    age: int\n"
        "def f(n):\n    return User(age=n)\n",
        ("age=n", "age=n + 1"),
        "from pydantic import BaseModel\ndef test_f():\n    got = f(3)\n"
        "    assert isinstance(got, BaseModel) and got.__class__.__name__ == 'User'\n"
        "    assert got.age == 3 and got.model_dump() == {'age': 3} and got == f(3)\n",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_honest_programs(name: str) -> None:
    package, code, change, test = PROGRAMS[name]
    pytest.importorskip(package)
    for text, kind in ((code, "D"), (code.replace(*change), "E")):
        done = subprocess.run(
            [sys.executable, "-c", JUDGE, text, test], capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        found, why = json.loads(done.stdout)
        assert found == kind, why


def test_an_object_of_a_package_that_the_candidate_cannot_use() -> None:
    """A right program needs it, so there is no verdict."""
    code = "def f(rng):\n    return rng.integers(9)\n"
    test = "import numpy as np\ndef test_f():\n    assert f(np.random.default_rng(0)) == 7\n"
    done = subprocess.run(
        [sys.executable, "-c", JUDGE, code, test], capture_output=True, text=True, timeout=120
    )
    kind, why = json.loads(done.stdout)
    assert (kind, "'integers' of the tests' Generator" in why) == ("I", True)


def test_a_class_that_the_tests_have_not_imported() -> None:
    """It shows what it extends, as a model of scikit-learn of which they know the base."""
    version = pytest.importorskip("packaging.version")
    named = {"package": ("packaging.version", "Version")}
    base = candidate_class(Inner(None, 1), "Version", "Version", [], [], named)
    more = {"package": ("no_such_module", "Later")}
    later = candidate_class(Inner(None, 2), "Later", "Later", [base], [], more)
    for kind in (base, later):
        assert isinstance(instance(kind, Inner(None, 3)), version.Version)
    assert instance(later, Inner(None, 4)).__class__.__name__ == "Later"
    data = {"package": ("numpy", "ndarray")}
    array = candidate_class(Inner(None, 5), "ndarray", "ndarray", [], [], data)
    assert not isinstance(instance(array, Inner(None, 6)), np.ndarray)


def again(value: object) -> Any:
    def refused(item: object) -> Any:
        raise TypeError(f"{type(item).__name__} is not sent")

    return decode(encode(value, other=refused), other=lambda *_: None)


def test_arrays_of_objects_types_and_zones() -> None:
    array = np.array([["a", 1], [None, (2, "b")]], dtype=object)
    found = again(array)
    assert found.shape == (2, 2)
    assert found.tolist() == array.tolist()
    assert again(np.dtype("float32")) == np.float32
    assert again(np.dtype(object)).kind == "O"
    moment = datetime.datetime(2022, 10, 30, 2, 30, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"))
    for fold, hours in ((0, 2), (1, 1)):
        found = again(moment.replace(fold=fold))
        assert found.tzinfo is moment.tzinfo
        assert found.utcoffset() == datetime.timedelta(hours=hours)
    for parts in (("<f8", (1,), ("a",)), ("|O", (1,), b"12345678"), ("|O", (3,), ("a",))):
        with pytest.raises((MalformedError, ValueError)):
            BUILDERS["array"](*parts)
    for name in ("../../etc/passwd", "/etc/localtime", "", 3):
        with pytest.raises(MalformedError):
            BUILDERS["zone"](name)


def frames(pd: Any) -> list[Any]:
    mixed = pd.DataFrame(
        {
            "number": [1, 2],
            "text": ["x", None],
            "moment": pd.to_datetime(["2020-01-01", None]),
            "object": [[1], {"k": 2}],
        }
    )
    days = pd.date_range("2020-03-01", periods=40, freq="D", tz="America/New_York")
    return [
        mixed,
        *(mixed[column] for column in mixed),
        *(pd.DataFrame(), pd.DataFrame({"a": []}), pd.DataFrame(index=[1, 2])),
        pd.DataFrame(np.ones((2, 3)), index=["a", "a"], columns=["b", "b", "c"]),
        mixed.groupby(["number", "text"], dropna=False).agg({"number": ["sum", "mean"]}),
        pd.cut(pd.Series([1, 50]), [0, 18, 65]),
        pd.cut(pd.Series([1, 50]), [0, 18, 65], labels=["x", "y"]),
        *(pd.Series([1, None], dtype=kind) for kind in ("Int64", "Float32", "boolean")),
        *(pd.Series(["a", None], dtype=kind) for kind in ("string", "object", "category")),
        pd.Series([1, 2], index=pd.Index([(1, (2, 3)), frozenset({1})], tupleize_cols=False)),
        pd.get_dummies(pd.Series(["a", "b"]), sparse=True),
        *(days, pd.Series(days), pd.date_range("2020", periods=3, freq="MS", name="m")),
        *(pd.period_range("2020-01", periods=3, freq="M"), pd.interval_range(0, 3)),
        pd.timedelta_range("1h", periods=3, freq="h"),
        pd.Index([("a", 1), ("b", 2)], tupleize_cols=False),
        pd.Series([1.5, 2], name="s", index=pd.Index(["p", "q"], name="i")),
        mixed.dtypes,
    ]


def test_frames() -> None:
    pd = pytest.importorskip("pandas")
    same = {pd.DataFrame: pd.testing.assert_frame_equal, pd.Series: pd.testing.assert_series_equal}
    for value in frames(pd):
        found = again(value)
        assert type(found) is type(value)
        same.get(type(value), pd.testing.assert_index_equal)(found, value)
        assert getattr(found, "freq", None) == getattr(value, "freq", None)
    wide = pd.DataFrame(np.zeros((1, 10_000)))  # column by column it would take a second
    assert len(encode(wide, other=lambda _: (b"N", ()))) < 10 * wide.shape[1]
    described = pd.DataFrame({"a": [1]})
    described.attrs = {"unit": "m", "source": {"lines": [1, None]}}
    assert again(described).attrs == described.attrs
    moment = pd.Timestamp("2020-01-01 03:04:05.123456789", tz="Europe/Berlin")
    for value in (moment, pd.Timedelta("3h"), pd.Interval(1, 2), pd.Period("2020-01", "M")):
        found = again(value)
        assert (type(found), found, str(found)) == (type(value), value, str(value))
    assert again([pd.NaT, pd.NA]) == [pd.NaT, pd.NA]


def test_frames_that_change() -> None:
    pd = pytest.importorskip("pandas")
    for value in frames(pd):
        if isinstance(value, (pd.DataFrame, pd.Series)):
            before = contents(value)
            assert not differ(before, contents(value))
            value.index = [f"{n}!" for n in range(len(value))]
            assert differ(before, contents(value)) or not len(value)
            refill(value, before)
            assert not differ(before, contents(value))
    numbers = pd.DataFrame({"a": [1, 2]})
    before = contents(numbers)
    numbers.loc[0, "a"] = 5
    assert differ(before, contents(numbers))
    numbers.loc[0, "a"] = 1
    assert not differ(before, contents(numbers))
    assert differ(before, contents(numbers.astype(float)))
    numbers.attrs["unit"] = "m"
    assert differ(before, contents(numbers))
    refill(numbers, before)
    assert numbers.attrs == {}


def test_a_class_that_says_it_is_of_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    item = type("Series", (), {"__module__": "pandas"})()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(TypeError, match="Series is not sent"):
        again(item)


class Twice:
    """Gives other items the second time."""

    def __init__(self, first: Iterator[object]) -> None:
        self._first = first

    def __iter__(self) -> Iterator[object]:
        return iter([*self._first] or [object()])


def test_frames_of_a_hostile_process() -> None:
    """They are malformed; and the host, which has no use for them, makes none."""
    pd = pytest.importorskip("pandas")
    index, array = pd.RangeIndex(1), np.array([1])
    odd = np.array([object()], dtype=object)
    for name, parts in (
        ("DataFrame", (index, index, (array, array), {})),
        ("DataFrame", (index, [1], (array,), {})),
        ("DataFrame", (index, index, np.ones((1, 2)), {})),
        ("DataFrame", (index, index, np.ones((2, 1)), {})),
        ("Series", ([1], index, None, {})),
        ("Series", (array, index, object(), {})),
        ("Series", (array, index, None, {"a": [object()]})),
        ("Series", (array, index, None, [])),
        ("Series", (array, index, odd, {})),
        ("Index", (odd, None)),
        ("Index", (array, object())),
        ("MultiIndex", ((index,), (np.array([5]),), ("a",))),
        ("MultiIndex", ((odd,), (array,), ("a",))),
        ("MultiIndex", ((index,), (np.array([0]),), Twice(iter("a")))),
        ("DatetimeIndex", (np.array(["2020"], dtype="M8[s]"), "dateutil//etc/passwd", None, None)),
        ("Timestamp", ("2020", None)),
        ("array", ("", "Int64", ("a",))),
        ("array", ("", "Int64", (object(),))),
        ("array", ("", "sparse", (1,))),
        ("array", ("Sparse", [1], 0)),
        ("array", ("Sparse", array, object())),
        ("array", ("Categorical", np.array([7]), index, True)),
        ("missing", ("DataFrame",)),
        ("dtype", ("period[D]",)),
        ("DataFrame", ()),
    ):
        with pytest.raises(MalformedError):
            BUILDERS[f"pandas.{name}"](*parts)
    with pytest.raises(MalformedError):
        decode(encode(pd.Series([1]), other=lambda _: (b"N", ())))
