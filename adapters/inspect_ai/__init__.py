"""Inspect AI: a scorer that passes the samples that a gate selects to the scorer that you name.

    GATEKEEPER_LOGPROBS=1 inspect eval task.py --no-score --model openai/gpt-4o-mini
    inspect score logs/FILE.eval --scorer gatekeeper/gated -S scorer=match -S budget=0.3 \
        -S log=logs/FILE.db --action overwrite --overwrite
    python -m gatekeeper.adapters.inspect_ai report logs/FILE.db

Inspect finds this package by its entry point. A sample that was not selected gets `Score.unscored`,
with the decision in its metadata; the metrics are estimates for all samples, with intervals.
"""

from gatekeeper.adapters.harness.release import unusable

try:
    from gatekeeper.adapters.inspect_ai.gates import CloseGates
    from gatekeeper.adapters.inspect_ai.hooks import AskForLogprobs, KnowRuns
    from gatekeeper.adapters.inspect_ai.metric import whole_set
    from gatekeeper.adapters.inspect_ai.report import main
    from gatekeeper.adapters.inspect_ai.scorer import gated
except (ImportError, AttributeError) as e:
    error = unusable("inspect-ai", "0.3.285", extra="inspect", error=e)
    if isinstance(error, ImportError):
        error.name = __name__  # `python -m` prints such an error as one line
    raise error from e

__all__ = ["AskForLogprobs", "CloseGates", "KnowRuns", "gated", "main", "whole_set"]
