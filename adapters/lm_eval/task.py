"""lm-evaluation-harness: a task whose metrics are computed for the documents that are selected."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np

from gatekeeper.adapters.lm_eval.grading import Grading, is_number, mean_of_documents
from gatekeeper.errors import BadInputError
from gatekeeper.gate import VerificationGate
from gatekeeper.protocols import Verifier
from gatekeeper.types import GateResult, Generation, Outcome, Verdict

__all__ = ["GatedTask", "Key"]

Metrics = Mapping[str, Mapping[str, Any]]  # by filter, by name
Key = tuple[str, str]  # a metric and a filter


@dataclass(frozen=True, slots=True)
class _Scored:
    """A filtered response with its metrics; an unverified one has none."""

    value: Any
    metrics: Mapping[str, Any]


class GatedTask:
    """A task of the harness with the gate in two of its methods.

    Parameters
    ----------
    name : str
    task : lm_eval.api.task.Task
        `apply_filters` and `process_results` are replaced.
    grading : Grading
    verifier : Verifier or None
        In place of the task's metrics.
    decide_all : callable
        Called when the harness applies the task's filters: all responses of the run are there.
    """

    def __init__(
        self,
        name: str,
        task: Any,
        grading: Grading,
        verifier: Verifier | None,
        decide_all: Callable[[], None],
    ) -> None:
        self.name = name
        self._task = task
        self._grading = grading
        self._verifier = verifier
        self._filter, self._measure = task.apply_filters, task.process_results
        self._metric, self._pipeline = grading.verifier or "", ""
        self._documents: dict[int, list[Any]] = {}
        self._outputs: dict[int, Generation] = {}
        self._results: dict[int, GateResult] = {}
        self._metrics: dict[int, Metrics] = {}
        self._computed: dict[str, Metrics] = {}  # by id, until they are with the document
        self._raised: Exception | None = None
        task.apply_filters = decide_all
        task.process_results = lambda doc, results: results[0].metrics

    @property
    def results(self) -> list[GateResult]:
        """By document, in the harness's order."""
        return [self._results[doc] for doc in self._documents]

    @property
    def requests(self) -> list[Any]:
        requests: list[Any] = self._task.instances
        return requests

    @property
    def complete(self) -> bool:
        """Whether every document has its metrics."""
        verified = all(r.decision.verify and r.verified for r in self._results.values())
        return verified and self._verifier is None

    def documents(self) -> list[int]:
        """The numbers of the documents with requests, in the harness's order."""
        if not self._documents:
            found: dict[int, list[Any]] = defaultdict(list)
            for request in self.requests:
                found[request.doc_id].append(request)
            self._documents = {
                doc: sorted(found[doc], key=lambda request: request.idx) for doc in sorted(found)
            }
        return list(self._documents)

    def prepare(self, gate: VerificationGate) -> None:
        """Read the outputs from the responses, and apply the task's own filters."""
        documents = self.documents()
        self._outputs = {doc: self._output(gate, doc, self._documents[doc]) for doc in documents}
        self._filter()
        pipelines = list(self.requests[0].filtered_resps)
        self._pipeline = self._grading.filter or pipelines[0]

    def decide(self, gate: VerificationGate, doc: int) -> None:
        """Have the gate decide on a document, and compute its metrics if it is selected.

        In the caller's thread: some metrics set alarms, which only the main thread may.
        """
        requests, output = self._documents[doc], self._outputs.pop(doc)
        result = gate.maybe_verify(output, partial(self._check, requests, output))
        if self._raised is not None:
            raise self._raised  # by the task's metrics: without the gate it ends the run too
        self._results[doc] = result
        self._metrics[doc] = metrics = self._metrics_of(result, requests)
        for request in requests:
            for pipeline, value in request.filtered_resps.items():
                request.filtered_resps[pipeline] = _Scored(value, metrics.get(pipeline, {}))

    def values(self) -> dict[Key, list[float | None]]:
        """By metric and filter: the value of each document, None of those not verified.

        Only metrics whose aggregate depends on the mean of the documents' values, with a value for
        each verified document.
        """
        if self._verifier is not None:
            right = [
                None if r.outcome is None or r.outcome.error is None else 1.0 - r.outcome.error
                for r in self.results
            ]
            return {(self._metric, self._pipeline): right}
        verified = [metrics for metrics in self._metrics.values() if metrics]
        names = {
            (metric, pipeline): None
            for metrics in verified
            for pipeline, found in metrics.items()
            for metric in found
        }
        return {
            (metric, pipeline): [
                float(metrics[pipeline][metric]) if metrics else None
                for metrics in (self._metrics[doc] for doc in self._documents)
            ]
            for metric, pipeline in names
            if mean_of_documents(self._task.aggregation().get(metric))
            and all(is_number(metrics.get(pipeline, {}).get(metric)) for metrics in verified)
        }

    def aggregate(self, metric: str, mean: float) -> float:
        """The task's score where the documents' values of a metric have this mean."""
        found = self._task.aggregation().get(metric) if self._verifier is None else None
        return mean if found is None else float(found([mean]))

    def annotate(self, samples: Iterable[dict[str, Any]]) -> None:
        """Add the gate's decision to each of the task's logged samples."""
        # The samples are in the order of documents, once for each pipeline of filters.
        for sample, result in zip(samples, cycle(self.results), strict=False):
            sample["filtered_resps"] = [scored.value for scored in sample["filtered_resps"]]
            sample["gate"] = {
                "verify": result.decision.verify,
                "reason": result.decision.reason.value,
                "propensity": result.decision.propensity,
                "verdict": result.outcome.verdict.value if result.outcome else None,
            }

    def _output(self, gate: VerificationGate, doc: int, requests: Sequence[Any]) -> Generation:
        """A document's responses as one output, and the requests with plain text in them.

        If the gate's log has the document, the text of the log counts, also where the model
        generated another one since.
        """
        id_ = f"{self.name}/{doc}"
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
        higher = bool(self._task.higher_is_better().get(self._metric, True))
        right = self._grading.is_right(value, higher_is_better=higher)
        verdict = Verdict.PASSED if right else Verdict.FAILED
        detail = f"{self._metric}={value}"
        return Outcome(verdict, detail=detail, meta=_as_meta(metrics), value=value)

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
        numbers = [
            name
            for name, value in found.items()
            if is_number(value) and mean_of_documents(self._task.aggregation().get(name))
        ]
        self._metric = self._grading.metric or next(iter(numbers), "")
        if self._metric not in numbers:
            asked = f"--gate_metric {self._grading.metric}: " if self._grading.metric else ""
            raise BadInputError(
                f"{asked}task {self.name!r} has for a document the numbers "
                f"{', '.join(numbers) or '(none)'}: choose one of them with --gate_metric"
            )
        return float(found[self._metric])


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
