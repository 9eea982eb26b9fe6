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

from gatekeeper.adapters.harness.gate import GateOptions, open_gate
from gatekeeper.adapters.harness.report import Report, report_of
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
    """What decides whether the answer to a document is right.

    Parameters
    ----------
    metric : str or None
        A metric of the task; None: its first.
    filter : str or None
        The pipeline of filters whose metric counts; None: the task's first.
    passing : float
        The least value of the metric that is right.
    verifier : str or None
        Name of a verifier of gatekeeper, in place of the task's metrics: it gets the response, the
        document's fields and, as `gold`, the document's target.
    """

    metric: str | None = None
    filter: str | None = None
    passing: float = 1.0
    verifier: str | None = None


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
        self._tasks: dict[str, _Gated] = {}
        self._gate: VerificationGate | None = None
        open_gate(replace(options, log=None), horizon=1000, settings=settings).close()
        if options.log is not None:
            SQLiteLog(options.log).close()

    def adopt(self, tasks: Mapping[str, Any]) -> None:
        """Put the gate in front of the metrics of these tasks.

        Tasks that score log-likelihoods stay as they are: their metrics cost nothing more.

        Raises
        ------
        BadInputError
            If no task generates text, or a task has no documents.
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
                        f"task {name!r} asks for several responses to a document: the "
                        f"verifier {grading.verifier!r} judges one response; use the task's metrics"
                    )
                if grading.verifier not in self._verifiers:
                    self._verifiers[grading.verifier] = make_verifier(grading.verifier)
                verifier = self._verifiers[grading.verifier]
            self._tasks[name] = _Gated(name, task, grading, verifier, self._open)
        if not self._tasks:
            raise BadInputError(
                f"tasks={list(tasks)!r}: none of them generates text: there is nothing to gate"
            )

    def conclude(self, results: dict[str, Any]) -> dict[str, Report]:
        """Add to the harness's results what was verified, and the estimates for all documents.

        A metric that was computed for some documents only is renamed to `metric@verified`, since
        its value is not the task's score; `metric@all` is the estimate of the score.

        Returns
        -------
        dict of str to Report
            By task.
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
        """The gate, opened when the requests of all tasks are known."""
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
    """A filtered response with its metrics; an unverified one has none."""

    value: Any
    metrics: Mapping[str, Any]


class _Gated:
    """A task of the harness with the gate in two of its methods."""

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
            f"{self._metric}@all,{self._pipeline}": found.complement.value,
            f"{self._metric}@all_stderr,{self._pipeline}": error,
        }

    def annotate(self, samples: Iterable[dict[str, Any]]) -> None:
        """Add the gate's decision to each of the task's logged samples."""
        # The samples are in the order of documents, once for each pipeline of filters.
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

        In this thread: some metrics set alarms, which only the main thread may.
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
                raise self._raised  # by the task's metrics: without the gate it ends the run too
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

        If the gate's log has the document, the text of the log counts, also where the model
        generated another one since.
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
        """Whether the answer is right, by the task's metrics or by a verifier."""
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
        """The metrics of this run or of an earlier one; empty for an unverified document."""
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
        """The value that decides whether the answer is right. Raises BadInputError."""
        found = metrics[self._pipeline]
        self._metric = self._grading.metric or next(iter(found), "")
        value = found.get(self._metric)
        if not isinstance(value, Real):
            numbers = [name for name, value in found.items() if isinstance(value, Real)]
            raise BadInputError(
                f"metric={self._metric!r} of task {self._name!r} is not a number for a document: "
                f"choose with --gate_metric one of {', '.join(numbers) or '(none)'}"
            )
        if not self._task.higher_is_better().get(self._metric, True):
            raise BadInputError(
                f"metric={self._metric!r} of task {self._name!r} is better when lower: choose "
                "another with --gate_metric"
            )
        return float(value)


def _own_grading(name: str, task: Any) -> Grading | None:
    """The grading in the task's own YAML, from its filter `gatekeeper`."""
    for pipeline in task.get_config("filter_list") or ():
        for step in pipeline["filter"]:
            if step["function"] == "gatekeeper":
                wanted = {key: value for key, value in step.items() if key != "function"}
                allowed = {f.name for f in fields(Grading)} - {"filter"}
                if odd := wanted.keys() - allowed:
                    raise BadInputError(
                        f"task {name!r}: the filter 'gatekeeper' takes {', '.join(sorted(allowed))}"
                        f", not {sorted(odd)[0]!r}"
                    )
                return Grading(filter=pipeline["name"], **wanted)
    return None


def _text(responses: Sequence[str]) -> str:
    """One text for all responses; several are JSON, from which they can be read back."""
    return str(responses[0]) if len(responses) == 1 else json.dumps(list(responses))


def _as_meta(metrics: Metrics) -> dict[str, Any]:
    """The metrics for the log if JSON keeps them; a resumed run computes others again."""
    try:
        same = json.loads(json.dumps(metrics, allow_nan=False)) == metrics
    except (TypeError, ValueError):
        same = False
    return {"metrics": metrics} if same else {}


def _leaves(name: str, members: Mapping[str, Sequence[str]]) -> set[str]:
    """The tasks of a group and of its groups; of a task, the task itself."""
    if not members.get(name):
        return {name}
    return set().union(*(_leaves(member, members) for member in members[name]))


def _rename(rows: dict[str, Any]) -> None:
    for key in [key for key in rows if "," in key]:
        metric, _, pipeline = key.rpartition(",")
        base = metric.removesuffix("_stderr")
        rows[f"{base}@verified{metric[len(base) :]},{pipeline}"] = rows.pop(key)
