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

from gatekeeper.adapters.lm_eval.grading import Grading, is_number, is_real, mean_of_documents
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
        self._metric = grading.verifier or ""  # which one decides; chosen by the first document
        self._pipeline, self._pipelines = "", [""]
        self._documents: dict[int, list[Any]] = {}
        self._outputs: dict[int, Generation] = {}
        self._results: dict[int, GateResult] = {}
        self._metrics: dict[int, Metrics | None] = {}  # by document; None: not computed
        self._computed: dict[str, Metrics] = {}  # by id, until they are with the document
        self._raised: Exception | None = None
        task.apply_filters = decide_all
        task.process_results = lambda doc, results: results[0].metrics

    @property
    def results(self) -> list[GateResult]:
        """The results of the documents, in the harness's order."""
        return [self._results[doc] for doc in self._documents]

    @property
    def requests(self) -> list[Any]:
        requests: list[Any] = self._task.instances
        return requests

    @property
    def complete(self) -> bool:
        """Whether every document has its metrics."""
        return self._verifier is None and None not in self._metrics.values()

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
        self._pipelines = list(self.requests[0].filtered_resps)
        self._pipeline = self._grading.filter or self._pipelines[0]

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
                request.filtered_resps[pipeline] = _Scored(value, (metrics or {}).get(pipeline, {}))

    def values(self) -> dict[Key, list[float | None]]:
        """By metric and filter: the value of each document; None where there is none.

        Only metrics whose aggregate depends on the mean of the documents' values, with a value for
        some verified document; all of the task's such metrics where no document is verified.
        """
        if self._verifier is not None:
            right = [
                None if r.outcome is None or r.outcome.error is None else 1.0 - r.outcome.error
                for r in self.results
            ]
            return {(self._metric, self._pipeline): right}
        found = [self._metrics[doc] or {} for doc in self._documents]
        keys = {
            (metric, pipeline): None
            for metrics in found
            for pipeline, of in metrics.items()
            for metric, value in of.items()
            if is_number(value) and self._is_mean(metric)
        }
        if not any(found):
            means = filter(self._is_mean, self._task.aggregation())
            keys = {(metric, pipeline): None for metric in means for pipeline in self._pipelines}
        return {
            (metric, pipeline): [
                float(value) if is_number(value := metrics.get(pipeline, {}).get(metric)) else None
                for metrics in found
            ]
            for metric, pipeline in keys
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
            self._choose_metric(metrics)
        except Exception as error:
            self._raised = error
            raise
        self._computed[output.id] = metrics
        value = metrics[self._pipeline].get(self._metric)
        detail = f"{self._metric}={value!r:.80}"
        if not is_number(value):
            return Outcome(Verdict.INFRA_ERROR, detail=detail)
        higher = bool(self._task.higher_is_better().get(self._metric, True))
        right = self._grading.is_right(float(value), higher_is_better=higher)
        verdict = Verdict.PASSED if right else Verdict.FAILED
        return Outcome(verdict, detail=detail, meta=_as_meta(metrics), value=float(value))

    def _compute(self, requests: Sequence[Any]) -> Metrics:
        document = requests[0].doc
        return {
            pipeline: dict(self._measure(document, [r.filtered_resps[pipeline] for r in requests]))
            for pipeline in requests[0].filtered_resps
        }

    def _metrics_of(self, result: GateResult, requests: Sequence[Any]) -> Metrics | None:
        """The metrics of this run or of an earlier one; None for a document not selected."""
        if self._verifier is not None or not result.decision.verify:
            return None
        if result.id in self._computed:
            return self._computed.pop(result.id)
        metrics: Metrics | None = result.outcome.meta.get("metrics") if result.outcome else None
        if metrics is None:
            metrics = self._compute(requests)
        self._choose_metric(metrics)
        return metrics

    def _choose_metric(self, metrics: Metrics) -> None:
        """Which metric decides: the one asked for, or the first that the first document has.

        One for all documents: where another one has no number for it, nothing is decided. Raises
        BadInputError if there is none.
        """
        if self._metric:
            return
        asked, found = self._grading.metric, metrics[self._pipeline]
        means = [name for name in found if is_real(found[name]) and self._is_mean(name)]
        if not means or asked not in (None, *means):
            raise BadInputError(
                f"{f'--gate_metric {asked}: ' if asked else ''}task {self.name!r} has for a "
                f"document the numbers {', '.join(means) or '(none)'}: choose one of them with "
                "--gate_metric"
            )
        self._metric = asked or means[0]

    def _is_mean(self, metric: str) -> bool:
        return mean_of_documents(self._task.aggregation().get(metric))


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
