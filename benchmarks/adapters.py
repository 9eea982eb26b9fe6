"""The cost of reading a response, from the object a library returned to its signals: ns per token.

    python benchmarks/adapters.py            a minute or so on a quiet machine
    python benchmarks/adapters.py --quick    fewer outputs and repeats

Each row has this package's reader, one output after the other, beside the naive way and a
calibration loop of plain Python, all measured in turns. The targets are for a machine on which a
step of that loop takes REFERENCE_NS; "scaled" is the figure converted to that machine. Where vLLM
and `openai` are installed, their own objects are read; otherwise stand-ins with the same
attributes, which the output names.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from time import process_time_ns
from types import SimpleNamespace
from typing import Any

import numpy as np
from _machine import machine
from rich.console import Console
from rich.table import Table

from gatekeeper import Signals, batch_signals, signals_from_arrays, signals_of
from gatekeeper.io.responses import as_generation
from gatekeeper.types import FloatArray, Generation

K = 5
# Duration of a step of `calibration` on the machine of the targets. It follows from a row measured
# there: the naive way through vLLM's dicts took 855 ns per token, and takes 23.5 steps.
REFERENCE_NS = 855 / 23.5
STEPS = 20_000


def calibration() -> float:
    """A fixed piece of interpreter work: STEPS multiplications, additions and comparisons."""
    value, largest = 0.5, 0.0
    for _ in range(STEPS):
        value = value * 3.9 * (1.0 - value)
        if value > largest:
            largest = value
    return largest


# -- what is read ------------------------------------------------------------------------------


@dataclass
class Row:
    """Alternatives of one output, (L, K) tokens and values by rank, and the sampled token's."""

    tokens: list[list[int]]
    values: list[list[float]]
    sampled: list[int]
    own: list[float]
    ranks: list[int]


def rows(outputs: int, length: int, seed: int) -> list[Row]:
    """Three sampled tokens of four are the most probable one, one of ten is outside the K."""
    rng = np.random.default_rng(seed)
    result = []
    for _ in range(outputs):
        steps = rng.exponential(1.5, (length, K + 1))
        values = -np.cumsum(steps, axis=1) * 0.4
        tokens = rng.integers(0, 25_000, (length, K + 1)) * 6 + np.arange(K + 1)
        at = np.where(rng.random(length) < 0.75, 0, rng.integers(0, K, length))
        at = np.where(rng.random(length) < 0.1, K, at)
        here = np.arange(length)
        result.append(
            Row(
                tokens[:, :K].tolist(),
                values[:, :K].tolist(),
                tokens[here, at].tolist(),
                values[here, at].tolist(),
                (at + 1).tolist(),
            )
        )
    return result


@dataclass
class Logprob:
    """Stands in for vLLM's class of that name."""

    logprob: float
    rank: int | None = None
    decoded_token: str | None = None


@dataclass
class FlatLogprobs:
    """Stands in for vLLM's class of that name."""

    start_indices: list[int]
    end_indices: list[int]
    token_ids: list[int]
    logprobs: list[float]
    ranks: list[int | None]
    decoded_tokens: list[str | None]

    def __iter__(self) -> Iterator[dict[int, Logprob]]:
        for start, end in zip(self.start_indices, self.end_indices, strict=True):
            yield {
                self.token_ids[i]: Logprob(self.logprobs[i], self.ranks[i], self.decoded_tokens[i])
                for i in range(start, end)
            }


def vllm_types() -> tuple[Any, Any, str]:
    if find_spec("vllm") is None:
        return Logprob, FlatLogprobs, "stand-ins for vLLM's classes"
    module = import_module("vllm.logprobs")
    return module.Logprob, module.FlatLogprobs, "vLLM's own classes"


def request_output(row: Row, logprobs: Any) -> Any:
    completion = SimpleNamespace(
        index=0, text="text", token_ids=row.sampled, logprobs=logprobs, finish_reason="stop"
    )
    return SimpleNamespace(request_id="1", prompt_token_ids=[1], outputs=[completion])


def dict_output(row: Row, make: Any) -> Any:
    logprobs = []
    for tokens, values, sampled, own, rank in columns(row):
        entry = {sampled: make(own, rank, "a")}
        for i, (token, value) in enumerate(zip(tokens, values, strict=True), 1):
            entry[token] = make(value, i, "a")
        logprobs.append(entry)
    return request_output(row, logprobs)


def flat_output(row: Row, make: Any) -> Any:
    n, width = len(row.sampled), K + 1
    flat = make(
        start_indices=list(range(0, n * width, width)),
        end_indices=list(range(width, (n + 1) * width, width)),
        token_ids=[t for ts, _, s, _, _ in columns(row) for t in (s, *ts)],
        logprobs=[v for _, vs, _, own, _ in columns(row) for v in (own, *vs)],
        ranks=[r for *_, rank in columns(row) for r in (rank, *range(1, K + 1))],
        decoded_tokens=["a"] * (n * width),
    )
    return request_output(row, flat)


def columns(row: Row) -> Any:
    return zip(row.tokens, row.values, row.sampled, row.own, row.ranks, strict=True)


def chat_json(row: Row) -> dict[str, Any]:
    def entry(token: int, value: float) -> dict[str, Any]:
        return {"token": f"t{token}", "bytes": list(f"t{token}".encode()), "logprob": value}

    content = [
        entry(sampled, own)
        | {"top_logprobs": [entry(t, v) for t, v in zip(tokens, values, strict=True)]}
        for tokens, values, sampled, own, _ in columns(row)
    ]
    message = {"role": "assistant", "content": "text", "refusal": None}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [choice | {"logprobs": {"content": content, "refusal": None}}],
        "usage": {
            "prompt_tokens": 1,
            "completion_tokens": len(content),
            "total_tokens": 1 + len(content),
        },
    }


def completion_json(row: Row) -> dict[str, Any]:
    top = [
        {f"token_id:{sampled}": own}
        | {f"token_id:{t}": v for t, v in zip(tokens, values, strict=True)}
        for tokens, values, sampled, own, _ in columns(row)
    ]
    logprobs = {
        "tokens": [f"token_id:{t}" for t in row.sampled],
        "token_logprobs": row.own,
        "top_logprobs": top,
    }
    return {"id": "1", "choices": [{"index": 0, "text": "text", "logprobs": logprobs}]}


# -- the naive ways ----------------------------------------------------------------------------


def formulas(own: Any, top: list[list[float]]) -> tuple[float, float, float]:
    first, second = np.array([(values[0], values[1]) for values in top]).T
    margin = first - second
    return float(-np.mean(own)), float(-margin.min()), float(np.exp(-margin).mean())


def naive_dicts(output: Any) -> object:
    completion = output.outputs[0]
    own = [
        entry[token].logprob
        for token, entry in zip(completion.token_ids, completion.logprobs, strict=True)
    ]
    return formulas(
        own,
        [sorted((e.logprob for e in p.values()), reverse=True) for p in completion.logprobs],
    )


def naive_chat(response: Any) -> object:
    content = response.choices[0].logprobs.content
    return formulas(
        [entry.logprob for entry in content],
        [sorted((a.logprob for a in entry.top_logprobs), reverse=True) for entry in content],
    )


def naive_json(response: Any) -> object:
    content = response["choices"][0]["logprobs"]["content"]
    return formulas(
        [entry["logprob"] for entry in content],
        [sorted((a["logprob"] for a in e["top_logprobs"]), reverse=True) for e in content],
    )


def naive_dump(response: Any) -> object:
    return naive_json(response.model_dump())


def naive_completion(response: Any) -> object:
    logprobs = response["choices"][0]["logprobs"]
    return formulas(
        logprobs["token_logprobs"],
        [sorted(top.values(), reverse=True) for top in logprobs["top_logprobs"]],
    )


def naive_arrays(arrays: tuple[FloatArray, FloatArray, FloatArray]) -> object:
    own, first, second = arrays
    margin = first - second
    return float(-own.mean()), float(-margin.min()), float(np.exp(-margin).mean())


# -- measuring ---------------------------------------------------------------------------------


@dataclass
class Case:
    name: str
    inputs: list[Any]
    ours: Callable[[Any], Signals]
    naive: Callable[[Any], object]
    target: float | None = None  # ns per token


def read(response: Any) -> Signals:
    return signals_of(as_generation(response, id="1"))


def cases(outputs: int, length: int) -> tuple[list[Case], str]:
    # Few of the large ones, so that they stay in the cache, as a freshly parsed response does.
    many, few = rows(outputs, length, 0), rows(4, length, 1)
    one, whole, origin = vllm_types()
    arrays = []
    for row in many:
        values = np.array(row.values)
        arrays.append((np.array(row.own), values[:, 0].copy(), values[:, 1].copy()))
    dicts = [dict_output(row, one) for row in many]
    flat = [flat_output(row, whole) for row in many]
    result = [
        Case("arrays: chosen, top 2", arrays, lambda a: signals_from_arrays(*a), naive_arrays, 20),
        Case("vLLM FlatLogprobs", flat, read, naive_dicts, 200),
        Case("vLLM dict lists", dicts, read, naive_dicts, 500),
        Case("completions, JSON", [completion_json(row) for row in few], read, naive_completion),
        Case("chat, JSON", [chat_json(row) for row in few], read, naive_json),
    ]
    if find_spec("openai") is not None:
        from openai.types.chat import ChatCompletion

        objects = [ChatCompletion.construct(**chat_json(row)) for row in few]
        result += [
            Case("chat, openai objects", objects, read, naive_chat, 1500),
            Case("the same, model_dump() first", objects, read, naive_dump),
        ]
    return result, origin


def cpu_time(call: Callable[[], object]) -> int:
    start = process_time_ns()
    call()
    return process_time_ns() - start


def per_token(inputs: list[Any], call: Callable[[Any], object], length: int) -> float:
    def every() -> None:
        for each in inputs:
            call(each)

    return cpu_time(every) / (len(inputs) * length)


def table(found: list[Case], length: int, repeats: int) -> tuple[Table, bool, float]:
    best = {(case.name, way): float("inf") for case in found for way in ("ours", "naive")}
    step = float("inf")
    gc.collect()
    gc.disable()  # for both ways: the time of a collection depends on the JSON, not on readers
    for _ in range(repeats):  # in turns: noise affects all alike
        step = min(step, cpu_time(calibration) / STEPS)
        for case in found:
            for way, call in (("ours", case.ours), ("naive", case.naive)):
                if way == "naive" and case.naive is naive_dicts and "Flat" in case.name:
                    inputs = case.inputs[: max(len(case.inputs) // 10, 1)]  # it is very slow
                else:
                    inputs = case.inputs
                for _ in range(2):  # at the first the cache may hold the previous case
                    ns = per_token(inputs, call, length)
                    best[case.name, way] = min(best[case.name, way], ns)
    gc.enable()
    result = Table(
        title=f"CPU time from response to Signals, ns per token, {length} tokens, top {K}, "
        f"best of {repeats}",
        caption=f"calibration step: {step:.1f} ns here, {REFERENCE_NS:.1f} where the targets hold. "
        "naive: `sorted` per position, numpy for the formulas; no order, tie, mask or gap handled.",
    )
    for heading in ("", "gatekeeper", "naive", "ratio", "in steps", "scaled", "target", ""):
        result.add_column(heading, justify="left" if not heading else "right")
    every_met = True
    for case in found:
        ours, naive = best[case.name, "ours"], best[case.name, "naive"]
        scaled = ours * REFERENCE_NS / step
        met = case.target is None or scaled <= case.target
        every_met &= met
        result.add_row(
            case.name,
            f"{ours:.1f}",
            f"{naive:.1f}",
            f"{ours / naive:.2f}",
            f"{ours / step:.1f}",
            f"{scaled:.1f}",
            "" if case.target is None else f"{case.target:g}",
            "" if case.target is None else "met" if met else "MISSED",
        )
    return result, every_met, step


def batch_line(outputs: int, length: int, repeats: int) -> str:
    many = []
    for row in rows(outputs, length, 2):
        values = np.array(row.values)
        many.append(
            Generation("1", "", np.array(row.own), values[:, 0].copy(), values[:, 1].copy())
        )
    ns = min(cpu_time(lambda: batch_signals(many)) for _ in range(repeats)) / (outputs * length)
    return f"batch_signals, {outputs} outputs at once: {ns:.1f} ns per token"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer outputs and repeats")
    quick = parser.parse_args(arguments).quick
    outputs, length, repeats = (20, 512, 5) if quick else (100, 512, 15)
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(machine(), highlight=False)
    found, origin = cases(outputs, length)
    result, met, _ = table(found, length, repeats)
    console.print(f"vLLM rows: {origin}\n", highlight=False)
    console.print(result)
    console.print(batch_line(outputs, length, repeats), highlight=False)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
