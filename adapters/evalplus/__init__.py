"""EvalPlus: HumanEval+ and MBPP+ within a budget, from a file of samples.

`gatekeeper evalplus` is the command line: docs/evalplus.md. The samples are EvalPlus's own, one
JSON object per line, `task_id` and `solution` or `completion`. The gate also reads `logprobs`: what
`evalplus.codegen` writes, or `logprobs` of a choice of OpenAI's APIs.
"""
