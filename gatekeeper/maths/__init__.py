"""Whether a model's final answer equals the reference answer. See docs/maths.md."""

from gatekeeper.maths.checker import MathChecker

__all__ = ["MathChecker"]
