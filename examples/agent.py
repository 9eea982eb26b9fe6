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
    LoopResult,
    Stopped,
    VerificationGate,
)
from gatekeeper.bundled import TASKS
from gatekeeper.errors import MissingDependencyError
from gatekeeper.gate.loop import Generate
from gatekeeper.io.tasks import read_tasks
from gatekeeper.verifiers import ByKind, make_verifier


def bundled() -> Generate:
    """The bundled model. It cannot use feedback, so it draws another answer."""
    from gatekeeper.adapters.bundled import BundledModel

    model = BundledModel()

    def generate(task: Any, attempts: tuple[Attempt, ...]) -> object:
        (output,) = model.generate(
            [task["prompt"]],
            ids=[f"{task['id']}/{len(attempts)}"],  # determines the sample, with the seed
            temperature=0.7 if attempts else 0.0,
        )
        return output

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
    parser.add_argument("tasks", type=Path, nargs="?", default=TASKS)
    parser.add_argument("--model", help="of an endpoint (default: the bundled model)")
    parser.add_argument("--base-url", help="endpoint of OpenAI's API (default: OpenAI's own)")
    parser.add_argument("--policy", default="cst")
    parser.add_argument("--budget", type=float, default=0.3, help="share of the outputs to verify")
    parser.add_argument("--attempts", type=int, default=3, help="most outputs of one task")
    parser.add_argument("--sandbox", default="local", help="what runs code: local or docker")
    parser.add_argument("--log", type=Path, help="file to write or to resume")
    return parser.parse_args(argv)


def work(args: argparse.Namespace) -> int:
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
        generate = served(gate, args.model, args.base_url) if args.model else bundled()
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
    if status.missing_signal:
        print(f"{status.missing_signal} outputs came without log-probabilities: drawn at random")


if __name__ == "__main__":
    sys.exit(main())
