"""The page of a gate on a shared run: it follows all processes, and shows what each may spend."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree

from shared_runs import until

from gatekeeper import Budget, VerificationGate
from gatekeeper.log import PostgresRun
from gatekeeper.page.watcher import Watcher
from gatekeeper.testing import ScriptedVerifier, make_generation
from gatekeeper.types import SharedStatus

if TYPE_CHECKING:
    from postgres import Server

OUTPUTS = [make_generation(f"g{i}", seed=i) for i in range(60)]
LABELS = {output.id: i % 2 for i, output in enumerate(OUTPUTS)}


def open_gate(place: PostgresRun) -> VerificationGate:
    budget, verifier = Budget(fraction=0.4, total=70), ScriptedVerifier(LABELS)
    return VerificationGate(
        "cst", budget=budget, verifier=verifier, warmup=5, log=place, shared=True
    )


def shared_of(gate: VerificationGate) -> SharedStatus:
    shared = gate.status().shared
    assert shared is not None
    return shared


def rows(watcher: Watcher) -> list[list[str]]:
    """Of the table, as a browser shows them."""
    section = watcher.advance(60.0, at_once=True).sections["processes"]
    body = ElementTree.fromstring(section).find(".//tbody")
    assert body is not None
    return [["".join(cell.itertext()) for cell in row] for row in body]


def test_processes_leases_and_lag(postgres: Server) -> None:
    place = postgres.new_run()
    one, two = open_gate(place), open_gate(place)
    asked: list[SharedStatus] = []

    def ask() -> SharedStatus:
        asked.append(shared_of(one))
        return asked[-1]

    def is_known() -> bool:
        """Both processes, all of their events, and every lease of the same moment."""
        found = rows(watcher)
        leased = sum(p.leased["total"] for p in asked[-1].processes)
        free = asked[-1].free.get("total", 0.0)
        return len(found) == 3 and found[1][3] == "0" and abs(leased + free - 70) < 1e-9

    watcher = Watcher(place, shared=ask)
    with one:
        with two:
            for i, output in enumerate(OUTPUTS):
                (one if i < 40 else two).maybe_verify(output)
            until(lambda: one.status().seen == two.status().seen == len(OUTPUTS))
            until(is_known)
            first, second, nobody = rows(watcher)
            shared = asked[-1]
            for row, process in zip((first, second), shared.processes, strict=True):
                leases = [f"{process.leased[name]:.4g}" for name in ("total", "rate")]
                assert row[1:3] == leases
                assert process.name in row[0]
            assert (first[0].endswith(", this one"), first[3], second[3]) == (True, "", "0")
            assert nobody == ["held by no process", *nobody[1:3], ""]
            assert nobody[1] == f"{shared.free['total']:.4g}"
            rendered = watcher.latest
            assert rendered is not None
            assert f"{len(OUTPUTS)} outputs" in rendered.status  # of both processes
            page = rendered.page(writable=False)
            assert page.index("Open verifications") < page.index("Processes on this run")
        until(lambda: len(rows(watcher)) == 2)  # two has left
        postgres.stop()
        try:
            until(lambda: not shared_of(one).reachable)
            section = watcher.advance(at_once=True).sections["processes"]
            assert "The database cannot be reached" in section
        finally:
            postgres.start()
    watcher.close()
    alone = Watcher(place)  # as `gatekeeper watch` has it
    assert "processes" not in alone.advance(60.0).sections
    assert "Processes on this run" not in alone.advance(60.0).page(writable=False)
    alone.close()
