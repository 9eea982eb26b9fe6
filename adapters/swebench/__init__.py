"""SWE-bench within a budget, from a file of predictions.

`gatekeeper swebench` is the command line: docs/swebench.md. The predictions are SWE-bench's own,
objects with `instance_id`, `model_name_or_path` and `model_patch`; the gate also reads `logprobs`
and `features`. An instance is evaluated by SWE-bench's `run_instance`, in a container, or looked up
in reports of an earlier run.
"""
