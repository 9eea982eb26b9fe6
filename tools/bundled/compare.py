"""Compare another engine with BundledModel, both with the same model folder.

python -m tools.bundled.compare transformers
VLLM_CPU_KVCACHE_SPACE=1 VLLM_ENABLE_V1_MULTIPROCESSING=0 python -m tools.bundled.compare vllm

It needs the engine and the extra "demo".
"""

import argparse
from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import islice

import numpy as np

import gatekeeper.bundled
from gatekeeper import Generation
from gatekeeper.adapters.bundled import BundledModel
from gatekeeper.io.tasks import read_tasks

Answers = list[tuple[str, list[float]]]  # text and the chosen tokens' log-probabilities
LIMIT = 200  # new tokens


def by_transformers(prompts: Sequence[str]) -> Answers:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(gatekeeper.bundled.MODEL)
    model = AutoModelForCausalLM.from_pretrained(gatekeeper.bundled.MODEL)
    answers: Answers = []
    for prompt in prompts:
        text = tokenizer.apply_chat_template([{"role": "user", "content": prompt}], tokenize=False)
        inputs = tokenizer(text, return_tensors="pt", add_special_tokens=False)
        out = model.generate(
            inputs.input_ids,
            attention_mask=inputs.attention_mask,
            max_new_tokens=LIMIT,
            do_sample=False,
            output_logits=True,
            return_dict_in_generate=True,
        )
        new = out.sequences[0, inputs.input_ids.shape[1] :]
        found = Generation.from_scores(tokenizer.decode(new, skip_special_tokens=True), out)
        answers.append((found.text, found.logprob.tolist()))
    return answers


def by_vllm(prompts: Sequence[str]) -> Answers:
    from vllm import LLM, SamplingParams

    engine = LLM(
        str(gatekeeper.bundled.MODEL), dtype="float32", max_model_len=512, enforce_eager=True
    )
    outputs = engine.chat(
        [[{"role": "user", "content": prompt}] for prompt in prompts],
        SamplingParams(temperature=0.0, max_tokens=LIMIT, logprobs=2),
    )
    choices = [output.outputs[0] for output in outputs]
    return [
        (c.text, [at[token].logprob for token, at in zip(c.token_ids, c.logprobs, strict=True)])
        for c in choices
    ]


def main() -> None:
    engines: dict[str, Callable[[Sequence[str]], Answers]] = {
        "transformers": by_transformers,
        "vllm": by_vllm,
    }
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=engines)
    parser.add_argument("--n", type=int, default=20, help="tasks to answer, greedily")
    args = parser.parse_args()
    tasks = list(islice(read_tasks(gatekeeper.bundled.TASKS), args.n))
    prompts = [task["prompt"] for task in tasks]
    ours = BundledModel().generate(
        prompts, ids=[task["id"] for task in tasks], max_new_tokens=LIMIT
    )
    same, furthest = 0, 0.0
    for mine, (text, logprob) in zip(ours, engines[args.engine](prompts), strict=True):
        if mine.text == text and mine.logprob.size == len(logprob):
            same += 1
            furthest = max(furthest, float(np.abs(mine.logprob - logprob).max()))
    print(
        f"{args.engine} {import_module(args.engine).__version__}: same text for {same} of "
        f"{len(prompts)}, largest difference of a log-probability {furthest:.1e}"
    )


if __name__ == "__main__":
    main()
