"""The Compose file: two gateways that share a budget, with options that the command takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from gatekeeper.cli import parser
from gatekeeper.log import PostgresRun
from gatekeeper.programs.run_options import run_options_of

ROOT = Path(__file__).parents[2]
FILE = ROOT / "examples" / "gateways" / "compose.yaml"


def test_two_gateways_on_one_database() -> None:
    """Both have the same run of the database beside them, and no password in its address."""
    yaml = pytest.importorskip("yaml")
    services = yaml.safe_load(FILE.read_text())["services"]
    database = services.pop("database")
    ports = set()
    for gateway in services.values():
        program, *arguments = gateway["command"]
        assert program == "gatekeeper"
        args = parser(["serve"]).parse_args(arguments)
        options = run_options_of(args)
        user, name = (database["environment"][f"POSTGRES_{key}"] for key in ("USER", "DB"))
        assert options.log == PostgresRun(f"postgresql://{user}@database/{name}", "gateways")
        assert options.shared
        assert args.own_key_env in gateway["environment"]
        assert gateway["environment"]["PGPASSWORD"] == database["environment"]["POSTGRES_PASSWORD"]
        assert gateway["depends_on"] == {"database": {"condition": "service_healthy"}}
        (port,) = gateway["ports"]
        assert port.endswith(f":{args.port}")
        ports.add(port)
        assert (FILE.parent / gateway["build"]["context"]).resolve() == ROOT
    assert len(services) == len(ports) == 2
