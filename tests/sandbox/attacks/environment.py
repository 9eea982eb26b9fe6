"""Variables of the environment, which the tests set and look at, and the candidate changes."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from attacks.program import Topic

__all__ = ["ENVIRONMENT"]

ENVIRONMENT = Topic("environment")
forged, right = ENVIRONMENT.forged, ENVIRONMENT.right

SETS = "import os\ndef configure(level):\n    os.environ['LEVEL'] = level\n    return level\ndef reset():\n    os.environ.pop('LEVEL', None)\ndef f(x):\n    return x * x\ndef run(back):\n    os.environ['LEVEL'] = 'in'\n    back()\n"
SILENT = SETS.replace("    os.environ['LEVEL'] = level\n", "")
LEAVES = SETS.replace("return x * x", "os.environ['LEVEL'] = 'left'\n    return x * x")
HEAD = "import os, unittest\nfrom unittest import mock\nimport solution\nfrom solution import configure, f, reset, run\n\n"
# A variable for each, as a plain run has one environment for all.
for n, (name, lie, test) in enumerate((
    ("set", SILENT, "def test_set():\n    assert 'LEVEL' not in os.environ\n    assert configure('high') == 'high' and os.environ['LEVEL'] == 'high' == os.getenv('LEVEL')\n    reset()\n    assert 'LEVEL' not in os.environ\n"),
    ("removed", SETS.replace("    os.environ.pop('LEVEL', None)\n", "    pass\n"), "def test_reset():\n    os.environ['LEVEL'] = '1'\n    reset()\n    assert os.environ.get('LEVEL') is None and f(3) == 9\n"),
    ("kept", LEAVES, "def test_f():\n    os.environ['LEVEL'] = '1'\n    assert f(3) == 9 and os.environ['LEVEL'] == '1'\n"),
    ("not left to the next test", LEAVES, "class TestF(unittest.TestCase):\n    def setUp(self):\n        self.assertNotIn('LEVEL', os.environ)\n        self.addCleanup(os.environ.pop, 'OTHER', None)\n    def test_a(self):\n        self.assertEqual(f(3), 9)\n    def test_b(self):\n        self.assertEqual(f(2), 4)\n"),
    ("set within a mock of it", SILENT, "def test_set():\n    with mock.patch.dict(os.environ, {'LEVEL': 'a'}, clear=True):\n        configure('b')\n        assert os.environ['LEVEL'] == 'b'\n    assert 'LEVEL' not in os.environ and f(3) == 9\n"),
    ("set in a dict in its place", SILENT, "def test_set():\n    with mock.patch.object(os, 'environ', {'LEVEL': 'a'}):\n        configure('b')\n        assert os.environ['LEVEL'] == 'b'\n    assert 'LEVEL' not in os.environ and f(3) == 9\n"),
    ("set before a callback", SETS.replace("    os.environ['LEVEL'] = 'in'\n    back()", "    back()\n    os.environ['LEVEL'] = 'in'"), "def test_run():\n    seen = []\n    run(lambda: seen.append(os.environ.get('LEVEL')))\n    assert seen == ['in'] and os.environ['LEVEL'] == 'in'\n"),
    ("set before an error", SILENT, "def test_set():\n    try:\n        configure(3)\n    except TypeError:\n        pass\n    configure('c')\n    assert os.environ['LEVEL'] == 'c'\n"),
    ("said to be of a variable that the tests do not name", SILENT.replace("return level", "os.environ.update(OTHER=level, PYTEST_ADDOPTS='--collect-only')\n    return level"), "def test_set():\n    configure('high')\n    assert os.environ['LEVEL'] == 'high'\n"),
)):  # fmt: skip
    forged(name, *(text.replace("LEVEL", f"CORPUS_{n}") for text in (lie, SETS, HEAD + test)))
IMPORTED = SETS.replace("LEVEL", "CORPUS_IMPORTED")
forged(
    "set when it is imported",
    IMPORTED,
    IMPORTED + "os.environ.setdefault('CORPUS_IMPORTED', 'low')\n",
    "import os\nos.environ.pop('CORPUS_IMPORTED', None)\nimport solution\nfrom solution import f\n\ndef test_f():\n    assert f(3) == 9 and os.environ['CORPUS_IMPORTED'] == 'low'\n",
)
right(
    "changed in a callback, which counts",
    SETS,
    HEAD
    + "def test_run():\n    def change():\n        os.environ['LEVEL'] = 'mine'\n        assert configure('deep') == 'deep'\n        os.environ['LEVEL'] = 'mine'\n    run(change)\n    assert os.environ['LEVEL'] == 'mine' and f(3) == 9\n",
)
