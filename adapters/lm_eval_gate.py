"""lm-evaluation-harness: a task's metrics, computed for the documents that the gate selects."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import cycle
from numbers import Real
from typing import Any

import numpy as np

from gatekeeper.adapters._harness import GateOptions, Report, open_gate, report_of
from gatekeeper.errors import BadInputError
from gatekeeper.gate import VerificationGate
from gatekeeper.log import SQLiteLog
from gatekeeper.protocols import Verifier
from gatekeeper.types import GateResult, Generation, Outcome, Verdict
from gatekeeper.verifiers import make_verifier

__all__ = ["Grading", "Session"]

NORMAL = 1.959964  # half a 95 % interval, in standard errors

Metrics = Mapping[str, Mapping[str, Any]]  # by filter, by name


@dataclass(frozen=True, slots=True, kw_only=True)
class Grading:
    """What says that the answer to a document is right.

    metric     of the task's own; None: its first
    filter     the pipeline of filters whose metric counts; None: the task's first
    passing    right from this value on
    verifier   name of a verifier of gatekeeper's that judges in place of the task's metrics: it
               is given the response, the document's fields and, as `gold`, the document's target
    """

    metric: str | None = None
    filter: str | None = None
    passing: float = 1.0
    verifier: str | None = None


class Session:
    """One run of the harness, all of whose generating tasks pass one gate.

    `adopt` the loaded tasks before the run, `conclude` its results after it.
    """

    def __init__(
        self, options: GateOptions, grading: Grading, *, settings: Mapping[str, Any]
    ) -> None:
        """Raises what a gate with these options would, before anything is generated."""
        self._options = options
        self._grading = grading
        self._settings = dict(settings)
        self._verifiers: dict[str, Verifier] = {}
        self._tasks: dict[str, _Gated] = {}
        self._gate: VerificationGate | None = None
        open_gate(replace(options, log=None), horizon=1000, settings=settings).close()
        if options.log is not None:
            SQLiteLog(options.log).close()

    def adopt(self, tasks: Mapping[str, Any]) -> None:
        """Put the gate in front of the metrics of these tasks. Raises BadInputError for none.

        Tasks that score log-likelihoods are left alone: their metrics cost nothing more.
        """
        for name, task in tasks.items():
            if task.OUTPUT_TYPE != "generate_until":
                continue
            if len(task.eval_docs) == 0:
                raise BadInputError(f"task {name!r} has no documents")
            grading = _own_grading(name, task) or self._grading
            verifier = None
            if grading.verifier is not None:
                if (task.get_config("repeats") or 1) > 1:
                    raise BadInputError(
                        f"task {name!r} asks for several responses to a document: a verifier such "
                        f"as {grading.verifier!r} judges one; leave it to the task's own metrics"
                    )
                if grading.verifier not in self._verifiers:
                    self._verifiers[grading.verifier] = make_verifier(grading.verifier)
                verifier = self._verifiers[grading.verifier]
            self._tasks[name] = _Gated(name, task, grading, verifier, self._open)
        if not self._tasks:
            raise BadInputError(
                f"tasks={list(tasks)!r}: none of them generates text, so there is nothing to gate"
            )

    def conclude(self, results: dict[str, Any]) -> dict[str, Report]:
        """Write into the harness's results what was verified, and what that says of all documents.

        A metric that was computed for some documents only is renamed to `metric@verified`: its
        value is not the task's score. `metric@all` is the estimate of that. Returns the reports
        by task.
        """
        unfinished = {name for name, task in self._tasks.items() if not task.complete}
        members = results.get("group_subtasks", {})
        tables = [results["results"], results.get("groups", {})]
        for name, rows in [row for table in tables for row in table.items()]:
            if unfinished & _leaves(name, members):
                _rename(rows)
        for name, task in self._tasks.items():
            results["results"][name] |= task.rows()
            task.annotate(results.get("samples", {}).get(name, ()))
        reports = {name: task.report for name, task in self._tasks.items()}
        results["gatekeeper"] = {name: report.as_json() for name, report in reports.items()}
        return reports

    def close(self) -> None:
        if self._gate is not None:
            self._gate.close()
        for verifier in self._verifiers.values():
            close = getattr(verifier, "close", None)
            if callable(close):
                close()

    def _open(self) -> VerificationGate:
        """The gate, which is opened when the requests of all tasks are known."""
        if self._gate is None:
            requests = [
                (name, i.doc_id, i.arguments) for name, t in self._tasks.items() for i in t.requests
            ]
            asked = json.dumps(requests, default=str).encode()
            self._gate = open_gate(
                self._options,
                horizon=sum(len(task.documents()) for task in self._tasks.values()),
                settings=self._settings | {"requests": hashlib.sha256(asked).hexdigest()},
            )
        return self._gate


@dataclass(frozen=True, slots=True)
class _Scored:
    """In place of a filtered response: with its metrics, of which an unverified one has none."""

    value: Any
    metrics: Mapping[str, Any]


class _Gated:
    """A task of the harness, two of whose methods go through the gate."""

    def __init__(
        self,
        name: str,
        task: Any,
        grading: Grading,
        verifier: Verifier | None,
        gate: Callable[[], VerificationGate],
    ) -> None:
        self._name = name
        self._task = task
        self._grading = grading
        self._verifier = verifier
        self._gate = gate
        self._filter, self._measure = task.apply_filters, task.process_results
        self._metric, self._pipeline = grading.verifier or "", ""
        self._results: list[GateResult] = []
        self._computed: dict[str, Metrics] = {}  # by id, until they are with the document
        self._raised: Exception | None = None
        self.complete = False  # every document has its metrics
        task.apply_filters = self._apply_filters
        task.process_results = lambda doc, results: results[0].metrics

    @property
    def requests(self) -> list[Any]:
        requests: list[Any] = self._task.instances
        return requests

    @property
    def report(self) -> Report:
        return report_of(self._results)

    def documents(self) -> dict[int, list[Any]]:
        """The requests for each document, in the order of documents."""
        found: dict[int, list[Any]] = defaultdict(list)
        for request in self.requests:
            found[request.doc_id].append(request)
        return {doc: sorted(found[doc], key=lambda r: r.idx) for doc in sorted(found)}

    def rows(self) -> dict[str, Any]:
        """The estimate for all documents, in the form of the harness's metrics."""
        if self.complete:
            return {}
        found = self.report.estimates.assisted
        if found is None:
            return {}
        error = (found.high - found.low) / (2 * NORMAL)
        return {
            f"{self._metric}@all,{self._pipeline}": found.pass_rate.value,
            f"{self._metric}@all_stderr,{self._pipeline}": error,
        }

    def annotate(self, samples: Iterable[dict[str, Any]]) -> None:
        """Tell in each of the task's logged samples what the gate made of it."""
        # They are in the order of documents, once for each pipeline of filters.
        for sample, result in zip(samples, cycle(self._results), strict=False):
            sample["filtered_resps"] = [scored.value for scored in sample["filtered_resps"]]
            sample["gate"] = {
                "verify": result.decision.verify,
                "reason": result.decision.reason.value,
                "propensity": result.decision.propensity,
                "verdict": result.outcome.verdict.value if result.outcome else None,
            }

    def _apply_filters(self) -> None:
        """The task's own filters, then the gate, document by document.

        In this thread: some metrics set alarms, which no other thread may.
        """
        gate, documents = self._gate(), self.documents()
        outputs = {doc: self._output(gate, doc, found) for doc, found in documents.items()}
        self._filter()
        pipelines = list(self.requests[0].filtered_resps)
        self._pipeline = self._grading.filter or pipelines[0]
        if self._pipeline not in pipelines:
            raise BadInputError(
                f"filter={self._pipeline!r}: task {self._name!r} has {', '.join(pipelines)}"
            )
        for doc, found in documents.items():
            check = partial(self._check, found, outputs[doc])
            result = gate.maybe_verify(outputs[doc], check)
            if self._raised is not None:
                raise self._raised  # by the task's metrics: the harness's own run ends here too
            self._results.append(result)
            metrics = self._metrics_of(result, found)
            for request in found:
                for pipeline, value in request.filtered_resps.items():
                    scored = _Scored(value, metrics.get(pipeline, {}))
                    request.filtered_resps[pipeline] = scored
        verified = all(r.decision.verify and r.verified for r in self._results)
        self.complete = verified and self._verifier is None

    def _output(self, gate: VerificationGate, doc: int, requests: Sequence[Any]) -> Generation:
        """A document's responses as one output, and the requests with plain text in them.

        One that the gate's log knows is the log's, be it drawn anew or not.
        """
        id_ = f"{self._name}/{doc}"
        responses = [response for request in requests for response in request.resps]
        known_already = gate.find(id_) is not None
        text = gate.output(id_).text if known_already else _text(responses)
        texts = [text] if len(responses) == 1 else json.loads(text)
        for request in requests:
            request.resps = [texts.pop(0) for _ in request.resps]
        known = [g for r in responses if (g := getattr(r, "generation", None)) is not None]
        if len(known) < len(responses):
            nothing = np.empty(0)
            return Generation(id_, text, nothing, nothing, nothing)
        # Several responses to a document count as one, their positions one after the other.
        return Generation(
            id_,
            text,
            logprob=np.concatenate([g.logprob for g in known]),
            top1=np.concatenate([g.top1 for g in known]),
            top2=np.concatenate([g.top2 for g in known]),
            prompt_tokens=known[0].prompt_tokens,
            model=known[0].model,
            finish_reason=known[0].finish_reason,
            k_seen=max(g.k_seen for g in known),
        )

    def _check(self, requests: Sequence[Any], output: Generation) -> Outcome:
        """Is the answer right? By the task's own metrics, or by a verifier."""
        if self._verifier is not None:
            document = requests[0].doc
            task = {**document, "gold": str(self._task.doc_to_target(document))}
            return self._verifier.verify(output, task)
        try:
            metrics = self._compute(requests)
            value = self._value(metrics)
        except Exception as error:
            self._raised = error
            raise
        self._computed[output.id] = metrics
        verdict = Verdict.PASSED if value >= self._grading.passing else Verdict.FAILED
        return Outcome(verdict, detail=f"{self._metric}={value}", meta=_as_meta(metrics))

    def _compute(self, requests: Sequence[Any]) -> Metrics:
        document = requests[0].doc
        return {
            pipeline: dict(self._measure(document, [r.filtered_resps[pipeline] for r in requests]))
            for pipeline in requests[0].filtered_resps
        }

    def _metrics_of(self, result: GateResult, requests: Sequence[Any]) -> Metrics:
        """What was computed now, or by the run before; nothing for an unverified one."""
        if self._verifier is not None or not (result.decision.verify and result.verified):
            return {}
        assert result.outcome is not None
        metrics: Metrics | None = result.outcome.meta.get("metrics")
        if result.id in self._computed:
            metrics = self._computed.pop(result.id)
        elif metrics is None:
            metrics = self._compute(requests)
        self._value(metrics)
        return metrics

    def _value(self, metrics: Metrics) -> float:
        """The value that says whether the answer is right. Raises BadInputError."""
        found = metrics[self._pipeline]
        self._metric = self._grading.metric or next(iter(found), "")
        value = found.get(self._metric)
        if not isinstance(value, Real):
            numbers = [name for name, value in found.items() if isinstance(value, Real)]
            raise BadInputError(
                f"metric={self._metric!r} of task {self._name!r} is no number for a document: "
                f"choose with --gate_metric one of {', '.join(numbers) or 'none: there is none'}"
            )
        if not self._task.higher_is_better().get(self._metric, True):
            raise BadInputError(
                f"metric={self._metric!r} of task {self._name!r} is better when lower: choose "
                "another with --gate_metric"
            )
        return float(value)


def _own_grading(name: str, task: Any) -> Grading | None:
    """What the task's own YAML says, in its filter `gatekeeper`."""
    for pipeline in task.get_config("filter_list") or ():
        for step in pipeline["filter"]:
            if step["function"] == "gatekeeper":
                wanted = {key: value for key, value in step.items() if key != "function"}
                allowed = {f.name for f in fields(Grading)} - {"filter"}
                if odd := wanted.keys() - allowed:
                    raise BadInputError(
                        f"task {name!r}: the filter 'gatekeeper' knows {', '.join(sorted(allowed))}"
                        f", not {sorted(odd)[0]!r}"
                    )
                return Grading(filter=pipeline["name"], **wanted)
    return None


def _text(responses: Sequence[str]) -> str:
    """One text for them, from which several can be had back."""
    return str(responses[0]) if len(responses) == 1 else json.dumps(list(responses))


def _as_meta(metrics: Metrics) -> dict[str, Any]:
    """For the log, where JSON gives them back as they are; a resumed run computes others again."""
    try:
        same = json.loads(json.dumps(metrics, allow_nan=False)) == metrics
    except (TypeError, ValueError):
        same = False
    return {"metrics": metrics} if same else {}


def _leaves(name: str, members: Mapping[str, Sequence[str]]) -> set[str]:
    """The tasks of a group, of its groups too; of a task, itself."""
    if not members.get(name):
        return {name}
    return set().union(*(_leaves(member, members) for member in members[name]))


def _rename(rows: dict[str, Any]) -> None:
    for key in [key for key in rows if "," in key]:
        metric, _, pipeline = key.rpartition(",")
        base = metric.removesuffix("_stderr")
        rows[f"{base}@verified{metric[len(base) :]},{pipeline}"] = rows.pop(key)
