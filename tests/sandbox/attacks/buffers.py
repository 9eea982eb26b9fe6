"""Protocols that name memory, or run the candidate's code in the tests' process."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from attacks.program import WRONG, Program, dedent, pair

__all__ = ["BUFFERS"]

BUFFERS: list[Program] = []

# An address that is not there, and each of the ways to name it.
NAMING = """
ADDRESS = 0xDEAD0000
class Naming:
    {body}
    def __len__(self): return 3
def f(*a):
    return Naming()
"""
ARRAY = "try:\n    import numpy as np\nexcept ImportError:\n    np = None\ndef f(n):\n    return np.arange(n) ** 2\n"
FIRST = "def f(n):\n    return [k * k for k in range(n)]\n"
INTERFACES = {
    "__array_interface__": "__array_interface__ = {'shape': (3,), 'typestr': '<i8', 'version': 3, 'data': (ADDRESS, True)}",
    "__array_interface__ of its own": "__array_interface__ = {'shape': (3,), 'typestr': '<i8', 'version': 3, 'data': (id(object), False), 'strides': (1 << 40,)}",
    "__array_interface__ of objects": "__array_interface__ = {'shape': (3,), 'typestr': '|O', 'version': 3, 'data': (id(object), False)}",
    "__array_struct__": "__array_struct__ = property(lambda self: __import__('ctypes').pythonapi.PyCapsule_New)",
    "__array__": "def __array__(self, *a, **k): return [0, 1, 4]",
    "__array_ufunc__": "def __array_ufunc__(self, *a, **k): return True",
    "__array_function__": "def __array_function__(self, *a, **k): return True",
    "__array_wrap__ and priority": "__array_priority__ = 1e9\n    def __array_wrap__(self, *a, **k): return True\n    def __array__(self, *a, **k): return [0, 0, 0]",
    "__dlpack__": "def __dlpack__(self, **k): return None\n    def __dlpack_device__(self): return (1, 0)",
    "__buffer__": "def __buffer__(self, flags): return memoryview(bytes(24))",
}
CHECKS = (
    "import numpy as np\n\ndef check(candidate):\n    np.testing.assert_array_equal(candidate(3), [0, 1, 4])\n",
    "import numpy as np\n\ndef check(candidate):\n    assert np.allclose(candidate(3), np.array([0, 1, 4]))\n",
    "import numpy as np\n\ndef check(candidate):\n    got = np.asarray(candidate(3))\n    assert got.shape == (3,) and (got == np.array([0, 1, 4])).all()\n",
    "import numpy as np\n\ndef check(candidate):\n    assert np.array_equal(candidate(3), [0, 1, 4])\n    assert np.max(np.abs(candidate(3) - np.array([0, 1, 4]))) < 1e-9\n",
    "import numpy as np\n\ndef check(candidate):\n    wanted = np.array([0, 1, 4])\n    assert (wanted == candidate(3)).all() and not (wanted - candidate(3)).any()\n",
)
for number, (name, body) in enumerate(INTERFACES.items()):
    BUFFERS += pair(
        "buffers",
        f"buffers: {name}, in numpy",
        NAMING.format(body=body),
        ARRAY,
        test=CHECKS[number % len(CHECKS)],
        entry_point="f",
        needs=("numpy",),
    )

# Without a package: what reads buffers, paths and numbers in the standard library.
for name, body, honest, test in (
    ("ctypes, by _as_parameter_", "_as_parameter_ = ADDRESS", "def f(n):\n    return n * n\n", "import ctypes\nassert ctypes.c_long(f(3)).value == 9"),
    ("ctypes, by from_param", "_as_parameter_ = property(lambda self: ADDRESS)\n    _type_ = 'P'", "def f(s):\n    return s[::-1].encode()\n", "import ctypes\nassert ctypes.c_char_p(f('abc')).value == b'cba'"),
    ("ctypes, string_at", "_as_parameter_ = ADDRESS\n    __index__ = __int__ = lambda self: ADDRESS", "def f(s):\n    return s[::-1].encode()\n", "import ctypes\nassert ctypes.string_at(f('abc'), 3) == b'cba'"),
    ("memoryview", "def __buffer__(self, flags): return memoryview(b'cba')", "def f(s):\n    return s[::-1].encode()\n", "assert memoryview(f('abc')).tolist() == [99, 98, 97] and bytes(f('ab')) == b'ba'"),
    ("bytes", "def __bytes__(self): return b'\\0' * 3\n    __index__ = lambda self: 3", "def f(s):\n    return s[::-1].encode()\n", "assert bytes(f('abc')) == b'cba' and bytearray(f('ab')) == b'ba'"),
    ("bytes of a number", "__index__ = lambda self: 1 << 40", "def f(s):\n    return s[::-1].encode()\n", "assert bytes(f('abc')) == b'cba'"),
    ("a list as long as it says", "__index__ = lambda self: 1 << 33", "def f(n):\n    return n * n\n", "assert len([0] * f(3)) == 9 and 'x' * f(2) == 'xxxx'"),
    ("array and struct", "__float__ = __index__ = lambda self: 0\n    def __iter__(self): return iter([self] * 3)", FIRST, "import array, struct\nassert array.array('i', f(3)).tolist() == [0, 1, 4] and struct.pack('3b', *f(3)) == b'\\0\\1\\4'"),
    ("a path", "def __fspath__(self): return '/proc/self/cmdline'", "import os\ndef f(s):\n    return os.path.join('/tmp', s)\n", "import os, pathlib\nassert os.fspath(f('a.txt')) == '/tmp/a.txt' and pathlib.PurePath(f('b')).name == 'b'"),
    ("pickled", "def __reduce_ex__(self, version): return (__import__('os')._exit, (0,))", FIRST, "import pickle\nassert pickle.loads(pickle.dumps(f(3))) == [0, 1, 4]"),
    ("pickled, its state", "def __reduce_ex__(self, version): return (eval, (\"type('Y', (), {'__eq__': lambda s, o: True})()\",))", FIRST, "import pickle\nassert pickle.loads(pickle.dumps(f(3))) == [0, 1, 4]"),
    ("copied", "def __reduce_ex__(self, version): return (eval, (\"type('Y', (), {'__eq__': lambda s, o: True})()\",))\n    __copy__ = __deepcopy__ = lambda self, *a: type('Y', (), {'__eq__': lambda s, o: True})()", FIRST, "import copy\nassert copy.deepcopy(f(3)) == [0, 1, 4] and copy.copy(f(2)) == [0, 1]"),
    ("replaced", "__replace__ = lambda self, **k: self\n    __eq__ = lambda self, other: True", "import datetime\ndef f(s):\n    return datetime.date.fromisoformat(s)\n", "import datetime\nassert f('2024-02-03').replace(day=29) == datetime.date(2024, 2, 29)"),
    ("JSON by default", "def __iter__(self): return iter([])\n    def toJSON(self): return '[0, 1, 4]'\n    items = lambda self: []", FIRST, "import json\nassert json.dumps(f(3), default=lambda item: item.toJSON()) == '[0, 1, 4]'"),
    ("a hint of its length", "def __length_hint__(self): return 1 << 62\n    def __len__(self): return 1 << 62\n    def __iter__(self): return iter(())", FIRST, "assert list(f(3)) == [0, 1, 4] and [*f(2)] == [0, 1]"),
    ("a negative length", "def __len__(self): return -1\n    def __iter__(self): return iter(())", FIRST, "got = f(3)\nassert len(got) == 3 and sum(got) == 5"),
    ("a hash that is not one", "def __hash__(self): return 'none'", "def f(n):\n    return (n, n * n)\n", "assert {f(3): 1} == {(3, 9): 1} and len({f(3), f(3), f(2)}) == 2"),
    ("text that is not text", "__str__ = __repr__ = __format__ = lambda self, *a: 5", "def f(n):\n    return n * n\n", "assert str(f(13)) == '169' and f'{f(13):>5}' == '  169' and repr(f(2)) == '4'"),
    ("text without end", "__str__ = __repr__ = __format__ = lambda self, *a: 'x' * (1 << 28)", "def f(n):\n    return n * n\n", "assert str(f(13)) == '169'"),
    ("a context variable's token", "__class__ = property(lambda self: __import__('contextvars').Token)", "def f(n):\n    return n * n\n", "import contextvars\nv = contextvars.ContextVar('v')\nv.set(f(13))\nassert v.get() == 169"),
    ("a weak reference", "__weakref__ = None\n    __call__ = lambda self: self\n    __eq__ = lambda self, other: True", "class Node: pass\nnode = Node()\nnode.value = 169\ndef f(n):\n    return node\n", "import weakref\nr = weakref.ref(f(13))\nassert r() is not None and r().value == 169"),
    ("a key function", "def __call__(self, *a): return self\n    __lt__ = lambda self, other: False", "def f(n):\n    return lambda s: s[n]\n", "assert sorted(['ab', 'ba', 'cc'], key=f(1)) == ['ba', 'ab', 'cc'] and max(['ab', 'ba'], key=f(1)) == 'ab'"),
    ("a class made by type", "__mro_entries__ = lambda self, bases: (object,)", "class Base:\n    value = 169\ndef f(n):\n    return Base().value\n", "made = type('Made', (), {'got': f(13)})\nassert made.got == 169 and isinstance(made().got, int)"),
):  # fmt: skip
    either = ("infra_error",) if "ctypes" in test else ()  # it reads any address it is given
    BUFFERS += pair(
        "buffers",
        f"buffers: {name}",
        NAMING.format(body=body),
        honest,
        dedent(test),
        verdicts=(*WRONG, *either),
        right=("passed", *either),
    )

# An exception class that lies about what it is.
RAISED = "from solution import f\n\ndef test_f():\n    try:\n        f(-1)\n    except {0} as error:\n        assert {1}\n    else:\n        assert False\n"
for name, forged, honest, kind, condition in (
    ("__class__ of an exception", "class E(Exception):\n    __class__ = ValueError\n    args = (42,)\ndef f(n):\n    raise E\n", "def f(n):\n    raise ValueError(42)\n", "ValueError", "error.args == (42,)"),
    ("a metaclass of exceptions", "class Meta(type):\n    __subclasscheck__ = __instancecheck__ = lambda cls, other: True\n    __module__ = 'builtins'\nclass ValueError(Exception, metaclass=Meta):\n    pass\nValueError.__module__ = 'builtins'\nValueError.__qualname__ = 'KeyError'\ndef f(n):\n    raise ValueError(42)\n", "def f(n):\n    raise LookupError(43)\n", "LookupError", "error.args == (43,) and not isinstance(error, KeyError)"),
    ("mro of an exception", "class Meta(type):\n    def mro(cls): return [cls, LookupError, Exception, BaseException, object]\nclass E(LookupError, metaclass=Meta):\n    def __init__(self, *a): self.errno = 1\ndef f(n):\n    raise E(0)\n", "def f(n):\n    raise LookupError(43)\n", "LookupError", "error.args == (43,)"),
    ("__reduce__ of an exception", "class E(ValueError):\n    def __reduce_ex__(self, version): return (type('Y', (ValueError,), {'__eq__': lambda s, o: True}), ())\n    __eq__ = lambda self, other: True\n    def __str__(self): return 'wrong'\ndef f(n):\n    raise E(0)\n", "def f(n):\n    raise ValueError('negative')\n", "ValueError", "str(error) == 'negative' and error.args == ('negative',)"),
    ("a cause", "class Y(Exception):\n    __eq__ = lambda self, other: True\ndef f(n):\n    raise ValueError from Y()\n", "def f(n):\n    raise ValueError(1) from KeyError('k')\n", "ValueError", "isinstance(error.__cause__, KeyError) and error.__cause__.args == ('k',)"),
    ("notes and a traceback", "def f(n):\n    e = ValueError()\n    e.__notes__ = [type('Y', (str,), {'__eq__': lambda s, o: True})()]\n    raise e\n", "def f(n):\n    e = ValueError(1)\n    e.add_note('n = -1')\n    raise e\n", "ValueError", "error.__notes__ == ['n = -1']"),
):  # fmt: skip
    test = RAISED.format(kind, condition)
    right = ("passed", "infra_error") if "__cause__" in test or "__notes__" in test else ("passed",)
    BUFFERS += pair("buffers", f"buffers: {name}", forged, honest, test=test, right=right)
