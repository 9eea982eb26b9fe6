"""Is the model's final answer the reference answer? See docs/maths.md."""

from gatekeeper.maths.checker import MathChecker

__all__ = ["MathChecker"]
