"""The options of a run over tasks: `gatekeeper run` and the examples on data sets have them."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from gatekeeper.budget import DEFAULT_FRACTION, Budget, Unit, budget_text, fraction_of
from gatekeeper.errors import BadInputError
from gatekeeper.features import features_of, samples_of
from gatekeeper.gate.configuration import usual_policy
from gatekeeper.gate.state import OnDrift
from gatekeeper.log.place import PostgresRun
from gatekeeper.policies import DEFAULT_POLICY, T0, Goal, Survey
from gatekeeper.programs.group_caps import caps_given
from gatekeeper.programs.log_argument import place_given
from gatekeeper.programs.values import shown_variable

__all__ = ["Engine", "RunOptions", "run_options_of"]

Engine = Literal["threads", "ray"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of a run over tasks.

    Parameters
    ----------
    generator : str
        A provider of `gatekeeper.io.providers` with a generator.
    model : str or None
        The model's name or folder, for generators that take one.
    base_url : str or None
        The endpoint, for generators that take one; None: the provider's own.
    api_key_env : str
        The environment variable with the endpoint's key.
    concurrency : int
        Requests at the same time, for generators that take it.
    max_tokens : int or None
        Most tokens of an answer; None: the generator's own limit.
    temperature : float
        At least 0; 0 is greedy.
    second_model : str or None
        Another model of an OpenAI endpoint, which answers each prompt too; whether it agrees is
        the feature "second_model".
    second_base_url : str or None
        Its endpoint; None: that of the first model.
    second_api_key_env : str or None
        The environment variable with the key of its endpoint; None: that of the first model for
        the same endpoint, none for another.
    goal : {"errors", "score"}
        Find wrong outputs, or estimate the mean score of all.
    policy : str
    budget : float or None
        Share of the full cost, in (0, 1]; None: 0.2, unless there is a total.
    total : float or None
        Most to spend, in `unit`, the warm-up included.
    budget_groups : str
        Caps of groups, in `unit`; see `gatekeeper.programs.group_caps`.
    warmup : int
        How many outputs come first and are all verified, at least 1; 0 for the goal "score".
    explore : float
        Share of the budget for outputs drawn at random, in [0, 1).
    on_drift : {"relearn", "report"}
    features : str
        Names from `gatekeeper.features.BY_NAME`, separated by commas; "agreement:N" among them
        has N further samples drawn for each output.
    unit : {"verifications", "seconds"}
        Unit of the budget.
    sandbox : str or None
        Name of the verifier for tasks of kind "code".
    maths_checker : str
        Name of the verifier for tasks of kind "math".
    threads : int
        Verifications at the same time, for the engine "threads".
    engine : {"threads", "ray"}
        Verify in threads of this process, or by actors of a Ray cluster.
    address : str or None
        Address of the cluster; None: see `gatekeeper.ray.RayVerifier`.
    generators : int or None
        Actors that generate; None: one for each GPU of the cluster for vLLM, else none, and this
        process generates.
    log : Path, PostgresRun or None
        SQLite file, or run in PostgreSQL, to write or to resume.
    shared : bool
        This is one of several processes on that run, which have one budget.
    seed : int
    check_all : bool
        Afterwards verify the other outputs too, outside the budget.
    dry_run : bool
        Only print what would be verified and what it would cost.
    json : bool
        Print the report as JSON.
    telemetry : str or None
        Where verdicts are sent: a name of `gatekeeper.programs.telemetry`.
    """

    generator: str = "bundled"
    model: str | None = None
    base_url: str | None = None
    api_key_env: str = "OPENAI_API_KEY"
    concurrency: int = 8
    max_tokens: int | None = None
    temperature: float = 0.0
    second_model: str | None = None
    second_base_url: str | None = None
    second_api_key_env: str | None = None
    goal: Goal = "errors"
    policy: str = DEFAULT_POLICY
    budget: float | None = None
    total: float | None = None
    budget_groups: str = ""
    warmup: int = T0
    explore: float = 0.1
    on_drift: OnDrift = "relearn"
    features: str = ""
    unit: Unit = "verifications"
    sandbox: str | None = None
    maths_checker: str = "math"
    threads: int = 2
    engine: Engine = "threads"
    address: str | None = None
    generators: int | None = None
    log: Path | PostgresRun | None = None
    shared: bool = False
    seed: int = 0
    check_all: bool = False
    dry_run: bool = False
    json: bool = False
    telemetry: str | None = None

    @property
    def share(self) -> float:
        """The budget, or the default."""
        return DEFAULT_FRACTION if self.budget is None else self.budget

    def budget_of(self, tasks: int) -> Budget:
        """The budget of a run over that many tasks.

        Raises
        ------
        BadInputError
            For a total that leaves nothing after the warm-up, or that a policy cannot spread.
        """
        total, fraction = self.total, self.budget
        if total is None or self.unit == "verifications":
            fraction = fraction_of(
                total,
                fraction,
                outputs=tasks,
                warmup=self.warmup,
                total_name="--total ",
                warmup_name="--warmup ",
            )
        elif fraction is None:
            raise BadInputError(
                f"--total {total:g} with --unit {self.unit}: give --budget too, the share of the "
                "full cost that the policy is to spend"
            )
        # A share of a stream that no process sees whole grows as the outputs come.
        horizon = None if self.shared and fraction is not None else tasks
        groups = caps_given(self.budget_groups)
        return Budget(
            fraction=fraction, total=total, unit=self.unit, horizon=horizon, groups=groups
        )

    def budget_text(self) -> str:
        """The budget, as a user gave it."""
        return budget_text(self.total, self.budget)


def run_options_of(args: argparse.Namespace) -> RunOptions:
    """The options that a parser has found; those that it does not have get their defaults.

    Raises
    ------
    BadInputError
        An option of the goal "errors" with the goal "score".
    """
    given = {name: value for name, value in vars(args).items() if value is not None}
    goal: Goal = given.get("goal", "errors")
    usual: dict[str, Any] = {"policy": usual_policy(goal)}
    if goal == "errors" and given.get("policy") == Survey.name:
        raise BadInputError(f"--policy {Survey.name} is the policy of --goal score; give that")
    try:
        features_of(given.get("features", ""))
        samples_of(given.get("features", ""))
    except BadInputError as e:
        raise BadInputError(f"{e}".replace("features=", "--features ")) from None
    if goal == "score":
        for name in ("policy", "warmup", "explore"):
            if name in given:
                raise BadInputError(
                    f"--{name} {given[name]} with --goal score: there every output is drawn with "
                    f"a known probability, the first ones too; leave --{name} out"
                )
        usual |= {"warmup": 0, "explore": 0.0}
    if "second_model" not in given:
        _check_no_second(given)
    for name in ("address", "generators"):
        if name in given and given.get("engine") != "ray":
            raise BadInputError(f"--{name} {given[name]}: it is for --engine ray; give that too")
    if "log" in given:
        given["log"] = place_given(given["log"], args)
    elif "run_name" in given:
        raise BadInputError(
            f"--run {args.run_name}: names a run of a log in PostgreSQL: give its address too, "
            "--log postgresql://USER@HOST/DATABASE"
        )
    if given.get("shared"):
        _check_shared(given)
    found = usual | given
    return RunOptions(**{f.name: found[f.name] for f in fields(RunOptions) if f.name in found})


def _check_no_second(given: Mapping[str, Any]) -> None:
    """Raises BadInputError for options of a second model, as none is named."""
    if "second_base_url" in given:
        alone = f"--second-base-url {given['second_base_url']}"
    elif "second_api_key_env" in given:
        alone = f"--second-api-key-env {shown_variable(given['second_api_key_env'])}"
    else:
        return
    raise BadInputError(f"{alone}: it is for --second-model; give that too")


def _check_shared(given: Mapping[str, Any]) -> None:
    """Raises BadInputError for options that several processes cannot share."""
    if not isinstance(given.get("log"), PostgresRun):
        log = f"--log {given['log']}" if "log" in given else "no --log"
        raise BadInputError(
            f"--shared with {log}: several processes share a run in a PostgreSQL database; give "
            "--log postgresql://USER@HOST/DATABASE --run NAME"
        )
    if given.get("check_all"):
        raise BadInputError(
            "--check-all with --shared: each process would verify what the others do; leave it "
            "out, or check all in a run of one process"
        )
