"""Files of options that are no such file, or have values that no option has."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from gatekeeper.cli import main
from gatekeeper.programs.config_file import LONGEST, line_of


def refusal(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The message on a file, without its path."""
    assert main(["serve", "--config", str(path)]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert len(message) < 1000
    return message.replace(str(path), "FILE")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"budget = " + b"[" * 5000, "--config FILE is not TOML: its values are nested too deeply"),
        (b"a" + b".a" * 2000 + b" = 1", "FILE is not TOML: its values are nested too deeply"),
        (b"port = 0x" + b"F" * 9999, "FILE is not TOML: a whole number of 39996 bits, and 63 are"),
        (b"[route.a]\nmodels = [9223372036854775808]", "a whole number of 64 bits, and 63 are"),
        (b"port = -9223372036854775808", "line 1: port: '-9223372036854775808': give a whole"),
        (b"#" * (LONGEST + 1), "FILE is not TOML: it has more than 1 MiB"),
        ('upstream = "x"'.encode("utf-16"), "FILE is not TOML: it is not UTF-8: invalid start"),
        (b"a" * 9999 + b" = 1", f"FILE, line 1: {80 * 'a'}: unknown: "),
        (b"[route.a]\n" + b"a" * 9999 + b" = 1", "FILE, line 1: route.a: models is missing"),
        (b'policy = "cst"\n[budget]\na = 1', "FILE, line 2: budget: {'a': 1}: give a number"),
        (b"policy = 2020-01-01", "FILE, line 1: policy: datetime.date(2020, 1, 1): give a string"),
        (b"BUDGET = 0.2", "FILE, line 1: BUDGET: unknown: did you mean 'budget'?"),
        (b"[routes.a]", "FILE, line 1: routes: unknown: did you mean 'route'?"),
        (b"x = 1", "FILE, line 1: x: unknown: choose one of upstream, host, "),
        (b"[route.'']\nmodels = ['a']", "FILE, line 1: route.: '': a name has 1 to 50 letters"),
        (b"budget = nan", "FILE, line 1: budget: 'nan': give a number in"),
        (b"[[route]]\nmodels = ['a']", "FILE, line 1: route: give tables, such as [route.small]"),
    ],
)
def test_a_file_that_cannot_be_used(
    content: bytes, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "gateway.toml"
    path.write_bytes(content)
    assert message in refusal(path, capsys)


def test_a_file_with_a_byte_order_mark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "gateway.toml"
    path.write_bytes('\ufeffpolicy = "cst"\r\nbudget = 2\r\n'.encode())
    assert "FILE, line 2: budget: '2': give a number in" in refusal(path, capsys)


def test_the_line_of_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after values of several lines, in tables, and in a long file, which is seldom parsed."""
    text = 'a = """\nb = 1\n"""\n\n"b" = [\n1,\n]\n[c.d]\nb = 2\ne = {f = 3}\n'
    for keys, line in ((("a",), 1), (("b",), 5), (("c",), 8), (("c", "d", "b"), 9)):
        assert line_of(text, *keys) == line
    assert line_of(text, "c", "d", "e", "f") == 10
    calls: list[str] = []
    parse = tomllib.loads
    monkeypatch.setattr(tomllib, "loads", lambda text: calls.append(text) or parse(text))
    assert line_of("#\n" * 20_000 + "a = 1", "a") == 20_001
    assert len(calls) < 20
