"""One line around an OpenAI client: the gate checks the bundled model's uncertain answers.

    python examples/wrapped_client.py

The model is served on loopback, so it needs no key (extras demo, math and openai). The log
`wrap.db` makes a second run continue the first: nothing is asked, decided or charged twice.
"""

from __future__ import annotations

import argparse
import threading
from pathlib import Path

from openai import OpenAI

from gatekeeper import Budget, VerificationGate
from gatekeeper.bundled import TASKS
from gatekeeper.bundled.serve import Server
from gatekeeper.io.tasks import read_tasks
from gatekeeper.maths import MathChecker


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--limit", type=int, default=150, help="how many problems (default: 150)")
    parser.add_argument("--log", type=Path, default=Path("wrap.db"), help="default: wrap.db")
    args = parser.parse_args()
    tasks = [task for task in read_tasks(TASKS) if task["kind"] == "math"][: args.limit]
    server = Server()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    budget = Budget(fraction=0.2, horizon=len(tasks))
    with VerificationGate(budget=budget, verifier=MathChecker(), log=args.log) as gate:
        client = gate.wrap(OpenAI(base_url=server.base_url, api_key="none"))
        for task in tasks:
            if gate.find(task["id"]):  # it is in the log of an earlier run
                continue
            with gate.task(task, id=task["id"]):
                client.chat.completions.create(
                    model=server.model.name,
                    messages=[{"role": "user", "content": task["prompt"]}],
                    temperature=0,
                )
        status = gate.status()
    server.shutdown()
    print(f"{status.seen} answers. {status.warmup_verified} verified as warm-up, ", end="")
    print(f"{status.warmup_errors} of them wrong.")
    print(f"Of the others {status.verified} verified, {status.errors_found} of them wrong.")
    if status.warmup_verified:
        usual = status.verified * status.warmup_errors / status.warmup_verified
        print(f"The same number at random would have found about {usual:.0f}.")


if __name__ == "__main__":
    main()
