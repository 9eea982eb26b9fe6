"""Who may read a log; and no log contains a key."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI
from serving import running

from gatekeeper import Budget, Generation, Outcome, Verdict, VerificationGate
from gatekeeper.log import Learned, SQLiteLog

KEY = "sk-live-0123456789abcdef"  # in every place where a client or a verifier may have one


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777], ids=oct)
def test_only_its_owner_reads_a_log(tmp_path: Path, umask: int) -> None:
    path = tmp_path / "run.db"
    before = os.umask(umask)
    try:
        log = SQLiteLog(path)
    finally:
        os.umask(before)
    log.append([Learned("a")])
    files = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    assert files == dict.fromkeys(["run.db", "run.db-wal", "run.db-shm", "run.db.lock"], 0o600)
    log.close()
    path.chmod(0o640)  # the owner's own decision to share a log stays
    with SQLiteLog(path) as again:
        assert len(list(again.events())) == 1
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        assert stat.S_IMODE((tmp_path / "run.db-wal").stat().st_mode) == 0o640


class Remote:
    """A verifier with a key of its own in a public attribute, as many are written."""

    def __init__(self, url: str, api_key: str, threshold: float = 0.5) -> None:
        self.url, self.api_key, self.threshold = url, api_key, threshold

    def verify(self, generation: Generation, task: Any) -> Outcome:
        return Outcome(Verdict.FAILED, seconds=0.1, detail="the verifier's own words")


def test_no_key_reaches_the_log(tmp_path: Path) -> None:
    """Of the client, its headers, a request's headers, a URL, a failed request, the verifier."""
    path = tmp_path / "run.db"
    with (
        running() as server,
        VerificationGate(
            "cst",
            budget=Budget(fraction=1.0),
            verifier=Remote(f"https://me:{KEY}@example.org", KEY),
            log=path,
        ) as gate,
        OpenAI(
            base_url=server.base_url,
            api_key=KEY,
            organization=KEY,
            default_headers={"X-Api-Key": KEY},
            default_query={"key": KEY},
            max_retries=0,
        ) as client,
    ):
        _ask(gate, client)
    held = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"the verifier's own words" in held  # it is this file that was looked through
    assert b"12+30=42" in held
    assert b"What is 12" not in held  # the prompt
    assert KEY.encode() not in held
    assert KEY[8:].encode() not in held


def _ask(gate: VerificationGate, client: OpenAI) -> None:
    wrapped = gate.wrap(client)
    ask: dict[str, Any] = {
        "model": "gatekeeper-bundled",
        "messages": [{"role": "user", "content": "What is 12 + 30?"}],
        "temperature": 0,
        "extra_headers": {"Authorization": f"Bearer {KEY}"},
    }
    wrapped.chat.completions.create(**ask)
    wrapped.with_options(api_key=KEY).chat.completions.create(**ask)
    with pytest.raises(Exception, match="does not exist"):
        wrapped.chat.completions.create(**ask | {"model": "none"})
    assert gate.status().verified + gate.status().warmup_verified == 2
