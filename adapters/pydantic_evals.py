"""pydantic-evals: a costly evaluator that runs on the outputs that a gate selects.

    gate = VerificationGate(budget=Budget(fraction=0.2), verifier=EvaluatorVerifier(Judge()))

    @evaluate(Gated(gate))
    async def answer(question: str) -> str: ...

`sample_rate` of pydantic-evals decides before the function runs, by its inputs. `Gated` decides
when the output is there: by the log-probabilities of the model's answer, within the budget, and
with a known propensity. It works online (`evaluate`, `OnlineEvaluation`) and in `Dataset.evaluate`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from gatekeeper.adapters.harness.release import unusable

try:
    import pydantic_evals.online  # noqa: F401  # the release has online evaluation
    from pydantic import TypeAdapter, ValidationError
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.exceptions import ModelHTTPError
    from pydantic_core import to_json
    from pydantic_evals import set_eval_attribute
    from pydantic_evals.evaluators import (
        EvaluationReason,
        Evaluator,
        EvaluatorContext,
        EvaluatorOutput,
        ReportEvaluator,
        ReportEvaluatorContext,
    )
    from pydantic_evals.reporting.analyses import ScalarResult, TableResult
except (ImportError, AttributeError) as e:
    raise unusable("pydantic-evals", "2.62.0", extra="pydantic-evals", error=e) from e

from gatekeeper.adapters import pydantic_ai as model_responses
from gatekeeper.adapters.harness.scores import score_of
from gatekeeper.adapters.openai.logprobs import ALTERNATIVES, is_refusal
from gatekeeper.adapters.openai.observer import own_id
from gatekeeper.analysis.score import score_rows
from gatekeeper.arguments import check_finite
from gatekeeper.errors import BadInputError
from gatekeeper.gate import VerificationGate
from gatekeeper.types import GateResult, Generation, Outcome, Verdict
from gatekeeper.types.values import check_text
from gatekeeper.wording import all_of

__all__ = ["EvaluatorVerifier", "Gated", "GatedScore", "Logprobs"]

_ATTRIBUTE = "gatekeeper"  # of the task run: the output's id, in the report too
_used: WeakKeyDictionary[VerificationGate, dict[str, set[str]]] = WeakKeyDictionary()
_used_lock = Lock()
_OUTPUT: TypeAdapter[Any] = TypeAdapter(EvaluatorOutput)


class _Output(str):
    """The id of an output, which a report shows; the output; and its id in each gate."""

    generation: Generation
    ids: dict[int, str]  # by `id()` of the gate: the log of one may have the name for another text

    @classmethod
    def of(cls, name: str, generation: Generation) -> _Output:
        made = cls(name)
        made.generation, made.ids = generation, {}
        return made


class EvaluatorVerifier:
    """An evaluator of pydantic-evals as the verifier of a gate; the task is the EvaluatorContext.

    Parameters
    ----------
    evaluator : Evaluator
        Its value decides whether the output is right: a bool; a number, right from `passing` on; a
        text, right if it is `passing`. If it raises, it could not tell.
    passing : float or str
        The least right number, or the right text.
    key : str or None
        Which value decides, where the evaluator gives several; None: the first.
    name : str
        By which a gate recognises it; default: its type and version.

    Raises
    ------
    BadInputError
        If `evaluator` is not an Evaluator, `passing` neither a finite number nor a text, or `key`
        or `name` no text.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        *,
        passing: float | str = 1.0,
        key: str | None = None,
        name: str = "",
    ) -> None:
        if not isinstance(evaluator, Evaluator):
            raise BadInputError(f"evaluator={evaluator!r:.80}: give an Evaluator of pydantic-evals")
        if not isinstance(passing, str):
            check_finite("passing", passing)
        check_text("name", name)
        if key is not None:
            check_text("key", key)
        self.evaluator, self.passing, self.key = evaluator, passing, key
        kind, version = type(evaluator), evaluator.get_evaluator_version()
        self.name = name or f"{kind.__module__}.{kind.__qualname__} {version or ''}"

    async def averify(self, generation: Generation, task: EvaluatorContext) -> Outcome:
        """Run the evaluator. Raises what it raises, and BadInputError for an unusable value."""
        if not isinstance(task, EvaluatorContext):
            raise BadInputError(f"task={task!r:.80}: an evaluator needs an EvaluatorContext")
        given = await self.evaluator.evaluate_async(task)
        try:
            given = _OUTPUT.validate_python(given)
        except ValidationError:
            raise BadInputError(
                f"{self.evaluator!r} returned {given!r:.80}: a bool, a finite number, a text, an "
                "EvaluationReason or a mapping of names to these is needed"
            ) from None
        if not isinstance(given, Mapping):
            given = {self.evaluator.get_default_evaluation_name(): given}
        named = {
            n: v if isinstance(v, EvaluationReason) else EvaluationReason(v)
            for n, v in given.items()
        }
        decides = self._deciding(named)
        grade, right = self._graded(decides.value)
        return Outcome(
            Verdict.PASSED if right else Verdict.FAILED,
            detail=decides.reason or "",
            value=grade,
            meta={"evaluations": {name: [v.value, v.reason] for name, v in named.items()}},
        )

    def _deciding(self, named: Mapping[str, EvaluationReason]) -> EvaluationReason:
        if not named:
            raise BadInputError(f"{self.evaluator!r} returned no value")
        if self.key is None:
            return next(iter(named.values()))
        if self.key not in named:
            raise BadInputError(f"key={self.key!r}: {self.evaluator!r} gives {', '.join(named)}")
        return named[self.key]

    def _graded(self, value: Any) -> tuple[float, bool]:
        """The number that an evaluator's value adds to a mean, and whether the value is right."""
        if isinstance(value, bool):
            return float(value), value
        if isinstance(value, str) is not isinstance(self.passing, str):
            raise BadInputError(f"passing={self.passing!r}: {self.evaluator!r} gave {value!r:.80}")
        right = value == self.passing if isinstance(value, str) else value >= self.passing
        return (float(right) if isinstance(value, str) else float(value)), right


@dataclass(repr=False)
class Gated(Evaluator):  # type: ignore[misc]  # untyped where it is not installed
    """Runs the verifier of a gate on the outputs that the gate selects.

    A selected output has the evaluator's own result. Every output has a label, `NAME gate`:
    "verified", "skipped" or "could not tell", with the reason. So a skipped output counts neither
    as right nor as wrong.

    Parameters
    ----------
    gate : VerificationGate
        With an `EvaluatorVerifier`, or any other verifier. A verifier that could not tell is an
        EvaluatorFailure, or with `on_unavailable="pass"` a label.
    task : callable or None
        From the EvaluatorContext: what the verifier needs besides the output. None: the context.
    id : callable or None
        From the EvaluatorContext: the output's name. None: the case's name, else the id that the
        provider gave. An output that the log has by this name with the same text is not verified
        again; with another text it is another output, `NAME#2`.
    """

    gate: VerificationGate
    task: Callable[[EvaluatorContext], Any] | None = None
    id: Callable[[EvaluatorContext], str] | None = None

    def __post_init__(self) -> None:
        """Raises BadInputError if `gate` is not a VerificationGate with a verifier, or another
        field no function.
        """
        _check_gate(self.gate)
        for name, given in (("task", self.task), ("id", self.id)):
            if not (given is None or callable(given)):
                raise BadInputError(
                    f"{name}={given!r:.80}: give a function of the EvaluatorContext, or None"
                )

    def get_default_evaluation_name(self) -> str:
        """That of the evaluator behind the gate, or the name of its verifier's class."""
        verifier = self.gate.verifier
        if isinstance(verifier, EvaluatorVerifier):
            return str(verifier.evaluator.get_default_evaluation_name())
        return type(verifier).__name__

    def get_evaluator_version(self) -> str | None:
        """That of the evaluator behind the gate."""
        verifier = self.gate.verifier
        if isinstance(verifier, EvaluatorVerifier):
            version: str | None = verifier.evaluator.get_evaluator_version()
            return version
        return None

    def build_serialization_arguments(self) -> dict[str, Any]:
        """The arguments of the evaluator behind the gate, since a gate itself has no JSON."""
        verifier = self.gate.verifier
        if isinstance(verifier, EvaluatorVerifier):
            return {"evaluator": verifier.evaluator.as_spec()}
        return {"verifier": type(verifier).__name__}

    async def evaluate(self, ctx: EvaluatorContext) -> dict[str, Any]:
        """Decide on the output; verify it if it is selected. Raises what `amaybe_verify` does."""
        generation = self._output(ctx)
        task = ctx if self.task is None else self.task(ctx)
        result = await self.gate.amaybe_verify(generation, task)
        name = self.get_default_evaluation_name()
        return {**_evaluation(name, result.outcome), f"{name} gate": _label(result)}

    def _output(self, ctx: EvaluatorContext) -> Generation:
        """The output, named once: for retries too, and by the same name in other gates."""
        known = ctx.attributes.get(_ATTRIBUTE)
        if not isinstance(known, _Output):
            known = _Output.of("", _answer_in(ctx.output))
        generation = known.generation
        if id(self.gate) not in known.ids:
            given = (known if known.ids else ctx.name) if self.id is None else self.id(ctx)
            name = given or generation.id
            generation = replace(generation, id=name, text=_text(ctx.output, generation))
            name = (_numbered if given else own_id)(self.gate, generation)
            if not known.ids:
                known = ctx.attributes[_ATTRIBUTE] = _Output.of(name, generation)
            known.ids[id(self.gate)] = name
        return replace(generation, id=known.ids[id(self.gate)])


@dataclass(repr=False)
class GatedScore(ReportEvaluator):  # type: ignore[misc]
    """In the report of `Dataset.evaluate`: the mean of the gated evaluator over all its outputs.

    Parameters
    ----------
    gate : VerificationGate
        The gate of a `Gated` among the data set's evaluators.
    """

    gate: VerificationGate

    def __post_init__(self) -> None:
        """Raises BadInputError if `gate` is not a VerificationGate with a verifier."""
        _check_gate(self.gate)

    def build_serialization_arguments(self) -> dict[str, Any]:
        """None: a gate has no JSON."""
        return {}

    def evaluate(self, ctx: ReportEvaluatorContext) -> list[Any]:
        """The estimate with its 95 % interval, or the bounds where nothing can be estimated.

        Raises
        ------
        BadInputError
            If no output of the report passed through the gate.
        """
        questions: dict[str, str] = {}
        results: list[GateResult] = []
        for case in ctx.report.cases:
            known = case.attributes.get(_ATTRIBUTE)
            ids = known.ids if isinstance(known, _Output) else {}
            result = self.gate.find(ids.get(id(self.gate), ""))
            if result is not None:
                questions[result.id] = case.source_case_name or case.name
                results.append(result)
        if not results:
            raise BadInputError("no output passed through this gate: add Gated(gate) to evaluators")
        grades = [None if r.outcome is None else r.outcome.grade for r in results]
        found = score_of(results, grades, questions=[questions[r.id] for r in results])
        name = Gated(self.gate).get_default_evaluation_name()
        about = f"mean of {all_of(found.outputs, 'output')}, {found.checks} of them verified"
        table = TableResult(
            title=f"{name}: {about}",
            description=" ".join([found.why, *found.notes]),
            columns=["", "estimate", "95 % interval"],
            rows=[list(row) for row in score_rows(found)],
        )
        if found.point is None:
            return [table]
        ends = f"95 % interval {found.low:.4f} to {found.high:.4f}"
        if found.low == found.high:
            ends = "known"
        return [ScalarResult(title=f"{name}, all", value=found.point, description=ends), table]


@dataclass
class Logprobs(AbstractCapability[Any]):  # type: ignore[misc]
    """Capability of an agent: asks for log-probabilities and hands them to `Gated`.

    It sets `openai_logprobs` and `openai_top_logprobs` unless the agent's settings have
    `openai_logprobs=False`; a model that refuses them is asked again without. With several
    requests in one run of the function the last answer counts.
    """

    def __post_init__(self) -> None:
        self._refusing: set[str] = set()

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """None: not for agents in files."""
        return None

    async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
        """Ask for at least five alternatives for each token."""
        given = dict(request_context.model_settings or {})
        refusing = request_context.model.model_name in self._refusing
        if refusing or given.get("openai_logprobs") is False:
            return request_context
        given["openai_logprobs"] = True
        given["openai_top_logprobs"] = max(given.get("openai_top_logprobs") or 0, ALTERNATIVES)
        return replace(request_context, model_settings=given)

    async def after_model_request(self, ctx: Any, *, request_context: Any, response: Any) -> Any:
        """Keep the answer with the run that is evaluated; no effect outside of one."""
        output = _Output.of(response.provider_response_id or "", _answer_in(response))
        set_eval_attribute(_ATTRIBUTE, output)
        return response

    async def on_model_request_error(
        self, ctx: Any, *, request_context: Any, error: Exception
    ) -> Any:
        """Once more without log-probabilities, if it is these that the provider refuses."""
        settings = dict(request_context.model_settings or {})
        refused = isinstance(error, ModelHTTPError) and is_refusal(error.status_code, str(error))
        if not (refused and settings.pop("openai_logprobs", False)):
            raise error
        settings.pop("openai_top_logprobs", None)
        self._refusing.add(request_context.model.model_name)
        return await request_context.model.request(
            request_context.messages, settings, request_context.model_request_parameters
        )


def _check_gate(gate: object) -> None:
    if not isinstance(gate, VerificationGate) or gate.verifier is None:
        raise BadInputError(f"gate={gate!r:.80}: give a VerificationGate with a verifier")


def _numbered(gate: VerificationGate, generation: Generation) -> str:
    """The name of a case's output: of several repeats the first free one, or the one that an
    earlier process began with the same text.
    """
    name, text = generation.id, generation.text

    def fits(id_: str) -> bool:
        return gate.find(id_) is None or gate.output(id_).text == text

    with _used_lock:
        used = _used.setdefault(gate, {}).setdefault(name, set())
        ids = (name if n == 1 else f"{name}#{n}" for n in count(1))
        id_ = next(each for each in ids if each not in used and fits(each))
        used.add(id_)
    return id_


def _answer_in(output: Any) -> Generation:
    """The model's answer in what a function returned; without log-probabilities, its text."""
    response = getattr(output, "response", output)  # of an AgentRunResult
    if not model_responses.recognises(response):
        return Generation("", "")
    (generation,) = model_responses.read(response, scope="content", skip_forced=False)
    return generation


def _text(output: Any, generation: Generation) -> str:
    if model_responses.recognises(output):
        return generation.text
    output = getattr(output, "output", output)  # of an AgentRunResult
    return output if isinstance(output, str) else to_json(output, fallback=repr).decode()


def _evaluation(name: str, outcome: Outcome | None) -> dict[str, Any]:
    """The evaluator's results, also of an earlier run; empty without a verdict."""
    if outcome is None or outcome.error is None:
        return {}
    if "evaluations" in outcome.meta:
        return {key: EvaluationReason(*each) for key, each in outcome.meta["evaluations"].items()}
    value = outcome.error == 0 if outcome.value is None else outcome.value
    return {name: EvaluationReason(value, outcome.detail or None)}


def _label(result: GateResult) -> EvaluationReason:
    decision, outcome = result.decision, result.outcome
    why = f"{decision.reason}, propensity {decision.propensity:.3g}"
    if not decision.verify:
        return EvaluationReason("skipped", why)
    if result.verified:
        return EvaluationReason("verified", why)
    detail = "no verdict" if outcome is None else outcome.detail
    return EvaluationReason("could not tell", f"{detail} ({why})")
