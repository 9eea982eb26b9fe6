"""lm-evaluation-harness with the gate in front of its metrics.

`python -m gatekeeper.adapters.lm_eval` is the harness's own command line with a few more options
(docs/lm-eval.md). In Python, `simple_evaluate` takes the arguments of the harness's and `gate`.
"""

from gatekeeper.adapters.harness.gate import GateOptions
from gatekeeper.adapters.lm_eval.command import main
from gatekeeper.adapters.lm_eval.evaluate import simple_evaluate
from gatekeeper.adapters.lm_eval.grading import Grading

__all__ = ["GateOptions", "Grading", "main", "simple_evaluate"]
