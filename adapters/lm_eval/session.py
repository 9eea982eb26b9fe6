"""lm-evaluation-harness: one run, with one gate for all its generating tasks."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gatekeeper.adapters.harness.gate import GateOptions, open_gate
from gatekeeper.adapters.harness.report import Report, report_of
from gatekeeper.adapters.harness.scores import sentence
from gatekeeper.adapters.lm_eval.grading import Grading, grading_of, mean_of_documents
from gatekeeper.adapters.lm_eval.tables import add_row, group_scores, mark_verified, task_scores
from gatekeeper.adapters.lm_eval.task import GatedTask, Key
from gatekeeper.analysis.score import ScoreEstimate, score_as_json
from gatekeeper.errors import BadInputError
from gatekeeper.gate import VerificationGate
from gatekeeper.log import SQLiteLog
from gatekeeper.log_mismatch import OUTPUTS, settings_as_options
from gatekeeper.protocols import Verifier
from gatekeeper.verifiers import make_verifier

__all__ = ["RunReport", "Session"]

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunReport:
    """The report of a gated run of the harness."""

    run: Report
    scores: dict[str, dict[Key, ScoreEstimate]] = field(default_factory=dict)  # by task or group

    def lines(self) -> list[str]:
        """The report in sentences."""
        lines = []
        for name, scores in self.scores.items():
            lines.append(f"{name}:")
            lines += [f"  {sentence(f'{key[0]} ({key[1]})', s)}" for key, s in scores.items()]
        return [*lines, "the run:", *(f"  {line}" for line in self.run.lines())]


class Session:
    """One run of the harness: one gate for all its generating tasks.

    Call `adopt` with the loaded tasks before the run and `conclude` with its results after it.

    Raises
    ------
    GatekeeperError
        What a gate with these options raises, before anything is generated.
    """

    def __init__(
        self, options: GateOptions, grading: Grading, *, settings: Mapping[str, Any]
    ) -> None:
        self._options = options
        self._grading = grading
        self._settings = dict(settings)
        self._verifiers: dict[str, Verifier] = {}
        self._tasks: dict[str, GatedTask] = {}
        self._groups: Mapping[str, Any] = {}
        self._gate: VerificationGate | None = None
        open_gate(replace(options, log=None), horizon=1000, settings=settings).close()
        if options.log is not None:
            SQLiteLog(options.log).close()

    def adopt(self, tasks: Mapping[str, Any], groups: Mapping[str, Any] | None = None) -> None:
        """Put the gate in front of the metrics of these tasks.

        Left as they are: tasks that score log-likelihoods, since their metrics cost nothing more,
        and tasks whose metrics exist for all documents together only.

        Raises
        ------
        BadInputError
            If no task is left to gate, or a task has no documents.
        """
        self._groups = groups or {}
        for name, task in tasks.items():
            if task.OUTPUT_TYPE != "generate_until":
                continue
            if len(task.eval_docs) == 0:
                raise BadInputError(f"task {name!r} has no documents")
            grading = grading_of(name, task, self._grading)
            if grading.verifier is None and not self._has_values(name, task, grading):
                continue
            verifier = self._verifier(name, task, grading)
            self._tasks[name] = GatedTask(name, task, grading, verifier, self._decide_all)
        if not self._tasks:
            raise BadInputError(
                f"--tasks {','.join(tasks)}: none of them generates text and has a metric with a "
                "value per document: there is nothing to gate"
            )

    def conclude(self, results: dict[str, Any]) -> RunReport:
        """Add to the harness's results what was verified, and the scores of all documents."""
        unfinished = {name for name, task in self._tasks.items() if not task.complete}
        members = results.get("group_subtasks", {})
        higher = results.setdefault("higher_is_better", {})
        tables: Sequence[dict[str, Any]] = [results["results"], results.get("groups", {})]
        scores = {name: task_scores(task) for name, task in self._tasks.items()}
        for name, group in self._groups.items():
            if unfinished & _leaves(name, members):
                scores[name] = group_scores(group, self._tasks, results["results"])
        for table in tables:
            for name, rows in table.items():
                if not unfinished & _leaves(name, members):
                    continue
                directions = higher.setdefault(name, {})
                mark_verified(rows, directions)
                for key, score in scores.get(name, {}).items():
                    add_row(rows, directions, key, score)
        for name, task in self._tasks.items():
            self._count(results, name, task)
            task.annotate(results.get("samples", {}).get(name, ()))
        ours = [result for task in self._tasks.values() for result in task.results]
        report = RunReport(report_of(ours, self._options.goal), scores)
        by_name = {
            name: {"scores": {",".join(key): score_as_json(score) for key, score in of.items()}}
            for name, of in scores.items()
        }
        results["gatekeeper"] = {
            "run": report.run.as_json(),
            "tasks": {
                name: report_of(task.results).as_json() | by_name.pop(name)
                for name, task in self._tasks.items()
            },
            "groups": by_name,
        }
        return report

    def close(self) -> None:
        if self._gate is not None:
            self._gate.close()
        for verifier in self._verifiers.values():
            close = getattr(verifier, "close", None)
            if callable(close):
                close()

    def _verifier(self, name: str, task: Any, grading: Grading) -> Verifier | None:
        if grading.verifier is None:
            return None
        if (task.get_config("repeats") or 1) > 1:
            raise BadInputError(
                f"--gate_verifier {grading.verifier}: task {name!r} asks for several responses to "
                "a document, and a verifier judges one; use the task's metrics"
            )
        if grading.verifier not in self._verifiers:
            self._verifiers[grading.verifier] = make_verifier(grading.verifier)
        return self._verifiers[grading.verifier]

    def _has_values(self, name: str, task: Any, grading: Grading) -> bool:
        """Whether the task has a metric with a value per document; warns of those without."""
        listed = task.aggregation()
        whole = [metric for metric, of in listed.items() if not mean_of_documents(of)]
        if grading.metric in whole:
            raise BadInputError(
                f"--gate_metric {grading.metric}: task {name!r} computes it from all documents "
                "together, so that no document has a value of its own"
            )
        if not whole or self._options.budget == 1.0:
            return True
        left = len(whole) == len(listed)
        _logger.warning(
            "task %r computes %s from all documents together: %s",
            name,
            ", ".join(whole),
            "all its documents are scored, as without a gate"
            if left
            else "there is no estimate of it, and its value is that of the verified documents",
        )
        return not left

    def _decide_all(self) -> None:
        """Decide on the documents of all tasks, the first time that the harness applies filters.

        For a score one task comes after the other: draws are spread over the stream, so that each
        task has its share of them. To find errors the tasks take turns in proportion to their
        sizes, so that all have a share of the warm-up.
        """
        if self._gate is not None:
            return
        self._gate = gate = self._open()
        for task in self._tasks.values():
            task.prepare(gate)
        turns = [
            ((at + 0.5) / len(task.documents()), task, doc)
            for task in self._tasks.values()
            for at, doc in enumerate(task.documents())
        ]
        if self._options.goal == "errors":
            turns.sort(key=lambda turn: turn[0])
        for _, task, doc in turns:
            task.decide(gate, doc)

    def _open(self) -> VerificationGate:
        requests = [
            (name, i.doc_id, i.arguments) for name, t in self._tasks.items() for i in t.requests
        ]
        asked = json.dumps(requests, default=str).encode()
        with settings_as_options(
            self._options.log,
            outputs="documents (--tasks, --limit, or another option of the harness)",
            own={"requests": OUTPUTS, "model": "--model", "grading": "--gate_metric and the like"},
            prefix="--gate_",
        ):
            return open_gate(
                self._options,
                horizon=sum(len(task.documents()) for task in self._tasks.values()),
                settings=self._settings | {"requests": hashlib.sha256(asked).hexdigest()},
            )

    def _count(self, results: dict[str, Any], name: str, task: GatedTask) -> None:
        """The counts of documents: all that the scores are about, and those verified."""
        if task.complete:
            return
        documents = len(task.documents())
        counts = results.get("n-samples", {}).get(name)
        if counts is not None:
            counts["effective"] = documents
            counts["verified"] = sum(result.verified for result in task.results)
        if "sample_len" in results["results"][name]:
            results["results"][name]["sample_len"] = documents


def _leaves(name: str, members: Mapping[str, Sequence[str]]) -> set[str]:
    """The tasks of a group and of its groups; of a task, the task itself."""
    if not members.get(name):
        return {name}
    return set().union(*(_leaves(member, members) for member in members[name]))
