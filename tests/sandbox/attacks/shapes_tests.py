"""Honest programs: tests as pytest and unittest have them."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from attacks.program import Program, shape

__all__ = ["SHAPED"]

CALC = """
import functools, os, sys

def add(a, b): return a + b
def div(a, b):
    if b == 0:
        raise ZeroDivisionError("division by zero is not allowed")
    return a / b
def roots(n): return [k ** 0.5 for k in range(n)]
def words(text): return sorted(set(text.lower().split()))
def show(name): print(f"Hello, {name}!")
def setting(name): return os.environ.get(name)
def read(path):
    with open(path) as file:
        return file.read().strip()
def write(path, text):
    with open(path, "w") as file:
        file.write(text)
class Counter:
    def __init__(self, start=0): self.n = start
    def up(self, k=1):
        self.n += k
        return self
class Client:
    def __init__(self, send): self.send = send
    def get(self, name):
        answer = self.send("GET", name)
        if answer["status"] != 200:
            raise RuntimeError(f"status {answer['status']}")
        return answer["body"]
"""
HEAD = "from solution import add, div, roots, words, show, setting, read, write, Counter, Client\n"


def calc(name: str, test: str, *, pytest: bool = False, needs: bool | None = None) -> Program:
    """A test of the calculator; `pytest`: it imports pytest, `needs`: it needs it."""
    wanted = pytest if needs is None else needs
    head = "import pytest\n" + HEAD if pytest else HEAD
    return shape(name, CALC, test=head + test, needs=("pytest",) if wanted else ())


_ = calc
SHAPED = [
    _("pytest: plain functions", "\ndef test_add():\n    assert add(2, 3) == 5\n    assert add('a', 'b') == 'ab', 'strings'\n\ndef test_words():\n    assert words('b A a') == ['a', 'b']\n"),
    _("pytest: raises", "\ndef test_div():\n    with pytest.raises(ZeroDivisionError):\n        div(1, 0)\n    assert div(6, 3) == 2\n", pytest=True),
    _("pytest: raises with match and info", "\ndef test_div():\n    with pytest.raises(ZeroDivisionError, match='not allowed') as info:\n        div(1, 0)\n    assert 'zero' in str(info.value) and info.type is ZeroDivisionError\n    pytest.raises(TypeError, add, 1, 'a')\n", pytest=True),
    _("pytest: approx", "\ndef test_roots():\n    assert roots(3) == pytest.approx([0, 1, 1.41421356])\n    assert div(1, 3) == pytest.approx(0.333, abs=1e-3)\n    assert {'a': div(2, 3)} == pytest.approx({'a': 0.6666667})\n", pytest=True),
    _("pytest: parametrize", "\n@pytest.mark.parametrize('a, b, total', [(1, 2, 3), (-1, 1, 0), pytest.param('a', 'b', 'ab', id='text')])\ndef test_add(a, b, total):\n    assert add(a, b) == total\n\n@pytest.mark.parametrize('n', range(4), ids=lambda n: f'n={n}')\ndef test_roots(n):\n    assert len(roots(n)) == n\n", pytest=True),
    _("pytest: parametrize twice, with names in a list", "\n@pytest.mark.parametrize(['a'], [(1,), (2,)])\n@pytest.mark.parametrize('b', [10, 20])\ndef test_add(a, b):\n    assert add(a, b) == a + b\n", pytest=True),
    _("pytest: parametrized class", "\n@pytest.mark.parametrize('k', [1, 5])\nclass TestCounter:\n    def test_up(self, k):\n        assert Counter(2).up(k).n == 2 + k\n\n    def test_twice(self, k):\n        assert Counter().up(k).up(k).n == 2 * k\n", pytest=True),
    _("pytest: a fixture", "\n@pytest.fixture\ndef counter():\n    return Counter(5)\n\ndef test_up(counter):\n    assert counter.up().n == 6\n\ndef test_fresh(counter):\n    assert counter.n == 5\n", pytest=True),
    _("pytest: fixtures of fixtures, with a yield", "\nlog = []\n\n@pytest.fixture(scope='module')\ndef base():\n    log.append('up')\n    yield 3\n    log.append('down')\n\n@pytest.fixture\ndef counter(base):\n    c = Counter(base)\n    yield c\n    c.n = -1\n\nclass TestCounter:\n    def test_one(self, counter):\n        assert counter.up().n == 4 and log == ['up']\n\n    def test_two(self, counter, base):\n        assert counter.n == base == 3\n", pytest=True),
    _("pytest: an autouse fixture and params", "\nstate = {}\n\n@pytest.fixture(autouse=True)\ndef clean():\n    state.clear()\n\n@pytest.fixture(params=[1, 2, 3], ids=str)\ndef n(request):\n    return request.param\n\ndef test_n(n):\n    assert state == {}\n    state[n] = add(n, n)\n    assert state[n] == 2 * n\n", pytest=True),
    _("pytest: a fixture without the import of pytest", "\ndef test_file(tmp_path):\n    path = tmp_path / 'x.txt'\n    write(path, 'hello')\n    assert path.read_text() == 'hello' and read(str(path)) == 'hello'\n", needs=True),
    _("pytest: tmp_path with subfolders", "\ndef test_files(tmp_path):\n    (tmp_path / 'a').mkdir()\n    (tmp_path / 'a' / 'b.txt').write_text(' b ')\n    assert read(tmp_path / 'a' / 'b.txt') == 'b'\n    assert [p.name for p in tmp_path.iterdir()] == ['a']\n", needs=True),
    _("pytest: monkeypatch", "\nimport solution\n\ndef test_env(monkeypatch):\n    monkeypatch.setenv('CORPUS', 'yes')\n    assert setting('CORPUS') == 'yes'\n    monkeypatch.delenv('CORPUS')\n    assert setting('CORPUS') is None\n", needs=True),
    _("pytest: monkeypatch of the candidate's own", "\nimport solution\n\ndef test_words(monkeypatch):\n    monkeypatch.setattr(solution, 'words', lambda text: ['w'])\n    assert solution.words('a b') == ['w']\n\ndef test_undone():\n    assert solution.words('b a') == ['a', 'b']\n", needs=True),
    _("pytest: capsys", "\ndef test_show(capsys):\n    show('Ann')\n    out, err = capsys.readouterr()\n    assert out == 'Hello, Ann!\\n' and err == ''\n    show('Bob')\n    assert 'Bob' in capsys.readouterr().out\n", needs=True),
    _("pytest: setup_method and teardown_method", "\nclass TestCounter:\n    def setup_method(self):\n        self.counter = Counter(1)\n\n    def teardown_method(self, method):\n        assert method.__name__.startswith('test')\n        del self.counter\n\n    def test_up(self):\n        assert self.counter.up(2).n == 3\n\n    def test_fresh(self):\n        assert self.counter.n == 1\n"),
    _("pytest: setup_class and setup_module", "\nmade = []\n\ndef setup_module(module):\n    made.append(Counter(7))\n\nclass TestCounter:\n    @classmethod\n    def setup_class(cls):\n        cls.base = made[0].n\n\n    def test_up(self):\n        assert self.base == 7 and add(self.base, 1) == 8\n"),
    _("pytest: setup_function", "\ndef setup_function(function):\n    function.counter = Counter(2)\n\ndef test_up():\n    assert test_up.counter.up().n == 3\n"),
    _("pytest: classes that inherit", "\nclass Base:\n    start = 0\n    def make(self):\n        return Counter(self.start)\n    def test_up(self):\n        assert self.make().up().n == self.start + 1\n\nclass TestZero(Base):\n    pass\n\nclass TestFive(Base):\n    start = 5\n    def test_more(self):\n        assert self.make().up(5).n == 10\n"),
    _("pytest: marks", "\n@pytest.mark.slow\n@pytest.mark.timeout(5)\ndef test_add():\n    assert add(1, 1) == 2\n\n@pytest.mark.skip(reason='later')\ndef test_later():\n    assert False\n\n@pytest.mark.xfail(reason='known')\ndef test_known():\n    assert add(1, 1) == 3\n", pytest=True),
    _("pytest: skipif and importorskip", "\nimport sys\n\n@pytest.mark.skipif(sys.version_info < (3, 0), reason='old')\ndef test_add():\n    assert add(1, 1) == 2\n\ndef test_json():\n    json = pytest.importorskip('json')\n    assert json.loads('[1]') == [add(0, 1)]\n", pytest=True),
    _("pytest: warns and recwarn", "\nimport warnings\n\ndef test_none():\n    with warnings.catch_warnings():\n        warnings.simplefilter('error')\n        assert add(1, 1) == 2\n    with pytest.warns(UserWarning):\n        warnings.warn('x', UserWarning)\n", pytest=True),
    _("pytest: a function of the tests, by their module", "\nimport sys\nfrom unittest import mock\n\ndef one():\n    return 1\n\ndef test_add():\n    with mock.patch(f'{__name__}.one', return_value=2):\n        assert add(3, one()) == 5\n    assert add(getattr(sys.modules[__name__], 'one')(), 1) == 2\n"),
    _("pytest: an async test", "\nimport asyncio\n\nasync def test_later():\n    await asyncio.sleep(0)\n    assert add(1, 2) == 3\n"),
    _("pytest: a helper with asserts", "\ndef verify(n):\n    found = roots(n)\n    assert len(found) == n\n    for k, root in enumerate(found):\n        assert abs(root * root - k) < 1e-9\n\ndef test_roots():\n    for n in (0, 1, 10):\n        verify(n)\n"),
    _("pytest: mock objects", "\nfrom unittest.mock import MagicMock, Mock, call\n\ndef test_get():\n    send = Mock(return_value={'status': 200, 'body': 'hi'})\n    assert Client(send).get('x') == 'hi'\n    send.assert_called_once_with('GET', 'x')\n\ndef test_error():\n    send = MagicMock(side_effect=[{'status': 404}])\n    try:\n        Client(send).get('y')\n    except RuntimeError as error:\n        assert str(error) == 'status 404'\n    else:\n        assert False\n    assert send.call_args_list == [call('GET', 'y')] and send.call_count == 1\n"),
    _("pytest: doctest's examples", "\nimport doctest, types\n\ndef test_examples():\n    module = types.ModuleType('examples')\n    module.__doc__ = '>>> add(2, 3)\\n5\\n>>> words(\"b a\")\\n[\\'a\\', \\'b\\']\\n'\n    module.add, module.words = add, words\n    failed, tried = doctest.testmod(module)\n    assert tried == 2 and failed == 0\n"),
    _("pytest: doctest.run_docstring_examples", "\nimport doctest\n\ndef test_examples():\n    test = doctest.DocTestParser().get_doctest('>>> add(1, 1)\\n2\\n', {'add': add}, 'x', None, 0)\n    result = doctest.DocTestRunner(verbose=False).run(test)\n    assert result == (0, 1) or tuple(result) == (0, 1)\n"),
    _("unittest: setUp and tearDown", "\nimport unittest\n\nclass TestCounter(unittest.TestCase):\n    def setUp(self):\n        self.counter = Counter(3)\n\n    def tearDown(self):\n        self.counter = None\n\n    def test_up(self):\n        self.assertEqual(self.counter.up().n, 4)\n\n    def test_fresh(self):\n        self.assertEqual(self.counter.n, 3)\n"),
    _("unittest: setUpClass and addCleanup", "\nimport unittest\n\nclass TestCounter(unittest.TestCase):\n    @classmethod\n    def setUpClass(cls):\n        cls.shared = Counter()\n\n    @classmethod\n    def tearDownClass(cls):\n        del cls.shared\n\n    def test_up(self):\n        self.addCleanup(lambda: None)\n        self.assertGreaterEqual(self.shared.up().n, 1)\n"),
    _("unittest: subTest", "\nimport unittest\n\nclass TestAdd(unittest.TestCase):\n    def test_add(self):\n        for a, b, total in [(1, 2, 3), (0, 0, 0), (-1, 1, 0)]:\n            with self.subTest(a=a, b=b):\n                self.assertEqual(add(a, b), total)\n"),
    _("unittest: assertRaises", "\nimport unittest\n\nclass TestDiv(unittest.TestCase):\n    def test_zero(self):\n        with self.assertRaises(ZeroDivisionError) as caught:\n            div(1, 0)\n        self.assertIn('not allowed', str(caught.exception))\n        self.assertRaises(TypeError, add, 1, 'a')\n        with self.assertRaisesRegex(ZeroDivisionError, 'by zero'):\n            div(2, 0)\n"),
    _("unittest: almost equal", "\nimport unittest\n\nclass TestFloats(unittest.TestCase):\n    def test_div(self):\n        self.assertAlmostEqual(div(1, 3), 0.3333333, places=6)\n        self.assertAlmostEqual(div(2, 3), 0.67, delta=0.01)\n        self.assertNotAlmostEqual(div(1, 2), 0.6)\n        for root, wanted in zip(roots(3), [0, 1, 1.4142136]):\n            self.assertAlmostEqual(root, wanted, places=6)\n"),
    _("unittest: containers", "\nimport unittest\n\nclass TestWords(unittest.TestCase):\n    maxDiff = None\n\n    def test_words(self):\n        self.assertListEqual(words('b a'), ['a', 'b'])\n        self.assertCountEqual(words('c b a'), ['a', 'b', 'c'])\n        self.assertIn('a', words('a'))\n        self.assertNotIn('z', words('a'))\n        self.assertIsInstance(words('a'), list)\n        self.assertSequenceEqual(words('a b'), ('a', 'b'), seq_type=None)\n        self.assertDictEqual(dict.fromkeys(words('a')), {'a': None})\n        self.assertSetEqual(set(words('a b')), {'a', 'b'})\n        self.assertTupleEqual(tuple(words('a')), ('a',))\n"),
    _("unittest: truth, None and order", "\nimport unittest\n\nclass TestMixed(unittest.TestCase):\n    def test_mixed(self):\n        self.assertTrue(words('a'))\n        self.assertFalse(words(''))\n        self.assertIsNone(setting('CORPUS_NONE'))\n        self.assertIsNotNone(words('a'))\n        self.assertIs(Counter().up().__class__, Counter)\n        self.assertGreater(add(2, 2), 3)\n        self.assertLessEqual(add(2, 2), 4)\n        self.assertRegex(words('abc')[0], r'^a.c$')\n        self.assertMultiLineEqual('a\\nb', '\\n'.join(words('b a')))\n"),
    _("unittest: mock.patch", "\nimport unittest\nfrom unittest.mock import patch\n\nclass TestShow(unittest.TestCase):\n    @patch('builtins.print')\n    def test_show(self, fake):\n        show('Ann')\n        fake.assert_called_with('Hello, Ann!')\n"),
    _("unittest: mock.patch of sys.stdout", "\nimport io, unittest\nfrom unittest.mock import patch\n\nclass TestShow(unittest.TestCase):\n    @patch('sys.stdout', new_callable=io.StringIO)\n    def test_show(self, out):\n        show('Ann')\n        self.assertEqual(out.getvalue(), 'Hello, Ann!\\n')\n"),
    _("unittest: mock_open", "\nimport unittest\nfrom unittest.mock import mock_open, patch\n\nclass TestRead(unittest.TestCase):\n    def test_read(self):\n        with patch('builtins.open', mock_open(read_data=' hi \\n')) as fake:\n            self.assertEqual(read('x.txt'), 'hi')\n        fake.assert_called_once_with('x.txt')\n"),
    _("unittest: patch of the candidate's module", "\nimport unittest\nfrom unittest.mock import patch\nimport solution\n\nclass TestWords(unittest.TestCase):\n    def test_words(self):\n        with patch.object(solution, 'words', return_value=['w']):\n            self.assertEqual(solution.words('x y'), ['w'])\n        self.assertEqual(solution.words('y x'), ['x', 'y'])\n"),
    _("unittest: async", "\nimport unittest\n\nclass TestAdd(unittest.IsolatedAsyncioTestCase):\n    async def asyncSetUp(self):\n        self.n = 2\n\n    async def test_add(self):\n        self.assertEqual(add(self.n, 3), 5)\n\n    def test_plain(self):\n        self.assertEqual(add(self.n, 1), 3)\n"),
    _("unittest: skips beside what runs", "\nimport sys, unittest\n\nclass TestAdd(unittest.TestCase):\n    @unittest.skip('later')\n    def test_later(self):\n        self.fail()\n\n    @unittest.skipIf(sys.platform == 'win32', 'not there')\n    def test_add(self):\n        self.assertEqual(add(1, 1), 2)\n\n    @unittest.expectedFailure\n    def test_known(self):\n        self.assertEqual(add(1, 1), 3)\n"),
    _("unittest: a mixin of tests", "\nimport unittest\n\nclass Cases:\n    def test_all(self):\n        for a, b, total in self.cases:\n            self.assertEqual(add(a, b), total)\n\nclass TestNumbers(Cases, unittest.TestCase):\n    cases = [(1, 2, 3)]\n\nclass TestTexts(Cases, unittest.TestCase):\n    cases = [('a', 'b', 'ab')]\n"),
    _("unittest: a message and a helper", "\nimport unittest\n\nclass TestAdd(unittest.TestCase):\n    def verify(self, a, b, total):\n        got = add(a, b)\n        self.assertEqual(got, total, msg=f'add({a}, {b}) gave {got!r}')\n\n    def test_add(self):\n        self.verify(1, 2, 3)\n        self.verify([1], [2], [1, 2])\n\nif __name__ == '__main__':\n    unittest.main()\n"),
    _("unittest: temporary files", "\nimport os, tempfile, unittest\n\nclass TestFiles(unittest.TestCase):\n    def setUp(self):\n        self.folder = tempfile.TemporaryDirectory()\n        self.addCleanup(self.folder.cleanup)\n        self.path = os.path.join(self.folder.name, 'x.txt')\n\n    def test_both(self):\n        write(self.path, 'hello')\n        self.assertTrue(os.path.isfile(self.path))\n        self.assertEqual(read(self.path), 'hello')\n        self.assertEqual(os.listdir(self.folder.name), ['x.txt'])\n"),
]  # fmt: skip
