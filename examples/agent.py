"""An agent that tries again: generate, verify a part, and show the model why an attempt failed.

    python examples/agent.py --log agent.db              # offline: the bundled model, its 600 tasks
    python examples/agent.py tasks.jsonl --base-url http://127.0.0.1:8000/v1 --model NAME \\
        --sandbox docker --log agent.db

After Ctrl-C or kill -9 the same command with the same log continues. See docs/agent.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gatekeeper import (
    Attempt,
    BadInputError,
    Budget,
    GatekeeperError,
    Generation,
    LoopResult,
    Reason,
    Stopped,
    VerificationGate,
)
from gatekeeper.adapters.openai.base_url import check_client_url
from gatekeeper.analysis.summary import summarise
from gatekeeper.bundled import TASKS
from gatekeeper.errors import MissingDependencyError
from gatekeeper.gate.loop import Generate
from gatekeeper.io.tasks import read_tasks
from gatekeeper.verifiers import ByKind, make_verifier

BLOCK = 32  # tasks


def bundled(tasks: Sequence[Any]) -> Generate:
    """The bundled model. It cannot use feedback, so it draws another answer.

    First answers are generated in blocks, which is quicker and changes none of them.
    """
    from gatekeeper.adapters.bundled import BundledModel

    model = BundledModel()
    place = {task["id"]: i for i, task in enumerate(tasks)}
    first: dict[str, Generation] = {}

    def answers(block: Sequence[Any], attempt: int) -> list[Generation]:
        return model.generate(
            [task["prompt"] for task in block],
            ids=[f"{task['id']}/{attempt}" for task in block],  # determines a sample, with the seed
            temperature=0.7 if attempt else 0.0,
        )

    def generate(task: Any, attempts: tuple[Attempt, ...]) -> object:
        if attempts:
            return answers([task], len(attempts))[0]
        if task["id"] not in first:
            block = tasks[place[task["id"]] :][:BLOCK]
            ids = (each["id"] for each in block)
            first.update(zip(ids, answers(block, 0), strict=True))
        return first.pop(task["id"])

    return generate


def served(gate: VerificationGate, model: str, base_url: str | None) -> Generate:
    """A model behind OpenAI's API. The wrapped client requests the log-probabilities."""
    try:
        import openai
    except ImportError as error:
        raise MissingDependencyError("openai", extra="openai", needed_for="--model") from error
    key = os.environ.get("OPENAI_API_KEY", "none")
    client = gate.wrap(openai.OpenAI(base_url=base_url, api_key=key))

    def generate(task: Any, attempts: tuple[Attempt, ...]) -> object:
        messages: list[Any] = [{"role": "user", "content": task["prompt"]}]
        for attempt in attempts:
            messages += [
                {"role": "assistant", "content": attempt.text},
                {"role": "user", "content": f"{attempt.feedback()}\nTry again."},
            ]
        try:
            return client.chat.completions.create(model=model, messages=messages)
        except openai.OpenAIError as error:
            raise GatekeeperError(f"{client.base_url} does not answer: {error}") from error

    return generate


def main(argv: Sequence[str] | None = None) -> int:
    args = arguments(argv)
    try:
        return work(args)
    except GatekeeperError as error:
        print(f"agent: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        later = "the same command continues" if args.log else "without --log nothing is kept"
        print(f"agent: interrupted; {later}", file=sys.stderr)
        return 130


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "tasks", type=Path, nargs="?", default=TASKS, help="task file (default: %(default)s)"
    )
    parser.add_argument("--model", help="of an endpoint (default: the bundled model)")
    parser.add_argument("--base-url", help="endpoint of OpenAI's API (default: OpenAI's own)")
    parser.add_argument("--policy", default="cst", help="what decides (default: %(default)s)")
    parser.add_argument(
        "--budget",
        type=float,
        default=0.3,
        help="share of the outputs to verify (default: %(default)s)",
    )
    parser.add_argument(
        "--attempts", type=int, default=3, help="most outputs of one task (default: %(default)s)"
    )
    parser.add_argument(
        "--sandbox", default="local", help="what runs code: local or docker (default: %(default)s)"
    )
    parser.add_argument("--log", type=Path, help="file to write or to resume")
    return parser.parse_args(argv)


def work(args: argparse.Namespace) -> int:
    check_client_url(args.base_url)
    if args.base_url and not args.model:
        raise BadInputError(
            f"--base-url {args.base_url} needs --model, the name of one of its models"
        )
    tasks = read_tasks(args.tasks)
    names = {"code": args.sandbox, "math": "math"}
    verifier = ByKind({kind: make_verifier(names[kind]) for kind in {t["kind"] for t in tasks}})
    with VerificationGate(
        args.policy,
        budget=Budget(fraction=args.budget),  # no horizon: the number of attempts is unknown
        verifier=verifier,
        log=args.log,
        on_unavailable="pass",
        settings={
            "tasks": hashlib.sha256(json.dumps(tasks, sort_keys=True).encode()).hexdigest(),
            "model": args.model,
        },
    ) as gate:
        generate = served(gate, args.model, args.base_url) if args.model else bundled(tasks)
        results = []
        for task in tasks:
            result = gate.run_loop(generate, task, id=task["id"], max_attempts=args.attempts)
            results.append(result)
            print(f"{task['id']}: {story(result)}", flush=True)
        report(gate, results)
    return 0


def story(result: LoopResult) -> str:
    """The verdict of each attempt."""
    outcomes = [a.result.outcome for a in result.attempts]
    return ", ".join(o.verdict if o else f"unchecked ({result.stopped})" for o in outcomes)


def gained(results: Sequence[LoopResult]) -> str:
    """The final results of tasks whose first answer was found wrong after the warm-up."""
    ends = Counter(
        result.stopped
        for result in results
        if len(result.attempts) > 1 or result.stopped is Stopped.ATTEMPTS
        if result.attempts[0].result.decision.reason is not Reason.WARMUP
    )
    right, wrong = ends[Stopped.PASSED], ends[Stopped.ATTEMPTS]
    return (
        f"{ends.total()} tasks had a first answer that was found wrong: {right} have a right one "
        f"now, {wrong} are known to have none, {ends.total() - right - wrong} have an unchecked one"
    )


def report(gate: VerificationGate, results: Sequence[LoopResult]) -> None:
    ends, status = Counter(result.stopped for result in results), gate.status()
    retried = [result for result in results if len(result.attempts) > 1]
    passed = sum(result.stopped is Stopped.PASSED for result in retried)
    print(f"\n{len(results)} tasks, {status.seen} attempts")
    for stopped in Stopped:
        print(f"{stopped:>12} {ends[stopped]:6}")
    print(f"{len(retried)} tasks were tried again, and {passed} of them passed then")
    print(
        f"verified {status.spent:g} of {status.cap:g} outputs that the budget allowed, "
        f"and {status.warmup_spent:g} of the warm-up"
    )
    found = summarise(attempt.result for result in results for attempt in result.attempts)
    if not found.evaluated:
        print("All were warm-up, which verifies everything: the budget applies to more tasks")
    elif found.random_found is not None:
        print(
            f"after the warm-up {found.verified} checks found {found.errors_found} wrong attempts; "
            f"as many at random would have found about {found.random_found:.0f}"
        )
        print(gained(results))
    if status.missing_signal:
        print(f"{status.missing_signal} outputs came without log-probabilities: drawn at random")


if __name__ == "__main__":
    sys.exit(main())
