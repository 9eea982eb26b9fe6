"""The plug-ins for lm-eval and EvalPlus without these packages; tests/harness has the real ones."""

from __future__ import annotations

import argparse
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gatekeeper.adapters import lm_eval
from gatekeeper.adapters.evalplus.samples import Dataset, read_samples
from gatekeeper.adapters.harness import release
from gatekeeper.adapters.harness.gate import GateOptions, add_options, options_of
from gatekeeper.adapters.lm_eval.grading import Grading, mean_of_documents
from gatekeeper.adapters.lm_eval.session import Session
from gatekeeper.cli import main
from gatekeeper.errors import BadInputError, LogMismatchError
from gatekeeper.types import Generation

N = 90
INSPECT = "gatekeeper.adapters.inspect_ai"


class Text(str):
    """A response that came with its output, as the adapter's models return it."""

    generation: Any = None


class Task:
    """The parts of a generating task of lm-eval that the gate uses."""

    OUTPUT_TYPE = "generate_until"

    def __init__(self, n: int = N) -> None:
        self.eval_docs = [{"i": i, "right": i % 3 > 0} for i in range(n)]
        self.instances = [self._request(doc) for doc in self.eval_docs]
        self.scored: list[int] = []

    def _request(self, doc: dict[str, Any]) -> Any:
        response = Text(f"answer {doc['i']}")
        top = np.full(5, -0.1)
        margin = (3.0 if doc["right"] else 0.3) + doc["i"] / 1000
        response.generation = Generation("x", response, top, top, top - margin, k_seen=2)
        return SimpleNamespace(
            doc=doc, doc_id=doc["i"], idx=0, arguments=(), resps=[response], filtered_resps={}
        )

    def get_config(self, name: str) -> Any:
        pipelines: list[dict[str, Any]] = [{"name": n, "filter": []} for n in ("strict", "loose")]
        return pipelines if name == "filter_list" else None

    def higher_is_better(self) -> dict[str, bool]:
        return {"acc": True}

    def aggregation(self) -> dict[str, Any]:
        return {"acc": np.mean}  # of another metric the harness takes the mean

    def apply_filters(self) -> None:
        for request in self.instances:
            assert type(request.resps[0]) is str  # nothing of ours reaches a filter
            request.filtered_resps = {"strict": request.resps[0], "loose": request.resps[0]}

    def process_results(self, doc: dict[str, Any], results: list[str]) -> dict[str, float]:
        assert results == [f"answer {doc['i']}"]
        self.scored.append(doc["i"])
        return {"acc": float(doc["right"]), "other": 0.25}


def gated(task: Task, options: GateOptions, **grading: Any) -> tuple[dict[str, Any], list[Any]]:
    """Results and per-document metrics, as the harness makes them of the gated task."""
    session = Session(options, Grading(**grading), settings={})
    session.adopt({"t": task})
    task.apply_filters()
    metrics = [
        task.process_results(request.doc, [request.filtered_resps["strict"]])
        for request in task.instances
    ]
    values = [m["acc"] for m in metrics if m]
    results: dict[str, Any] = {
        "results": {
            "t": {
                "alias": "t",
                "sample_len": len(values),
                "acc,strict": np.mean(values),
                "acc_stderr,strict": 0.1,
            },
            "g": {"acc,strict": 0.5},
        },
        "groups": {"g": {"acc,strict": 0.5}},
        "group_subtasks": {"g": ["t"]},
        "higher_is_better": {"t": {"acc": True}, "g": {"acc": True}},
        "n-samples": {"t": {"original": N, "effective": len(values)}},
    }
    session.conclude(results)
    session.close()
    return results, metrics


def test_every_document_at_a_budget_of_1() -> None:
    results, metrics = gated(Task(), GateOptions(budget=1.0))
    assert metrics == [{"acc": float(i % 3 > 0), "other": 0.25} for i in range(N)]
    assert results["results"]["t"]["acc,strict"] == pytest.approx(2 / 3)
    assert results["results"]["g"] == {"acc,strict": 0.5}
    assert results["n-samples"]["t"] == {"original": N, "effective": N}


def test_a_part_is_scored_and_its_metrics_are_renamed() -> None:
    task = Task()
    results, metrics = gated(task, GateOptions(goal="errors", budget=0.4, explore=0.5))
    verified = [i for i, found in enumerate(metrics) if found]
    assert sorted(set(task.scored)) == verified
    assert len(task.scored) == 2 * len(verified)  # once for each pipeline of filters
    assert 50 < len(verified) <= 66
    rows = results["results"]["t"]
    assert "acc,strict" not in rows
    assert not any("_stderr" in name for name in rows)
    for pipeline in ("strict", "loose"):  # every filter, and every metric
        assert rows[f"acc@low,{pipeline}"] <= 2 / 3 <= rows[f"acc@high,{pipeline}"]
        assert rows[f"other@all,{pipeline}"] == pytest.approx(0.25)
    assert results["higher_is_better"]["t"]["acc@all"] is True
    assert results["n-samples"]["t"] == {"original": N, "effective": N, "verified": len(verified)}
    assert results["groups"]["g"] == results["results"]["g"] == {"acc@verified,strict": 0.5}
    assert results["gatekeeper"]["tasks"]["t"]["selected"] == [f"t/{i}" for i in verified]


def test_which_metrics_have_a_value_per_document() -> None:
    """Those whose aggregate depends on the mean alone, whatever function computes it."""
    assert mean_of_documents(None)
    for mean in (
        np.mean,
        np.nanmean,
        lambda x: 100 * sum(x) / len(x),
        lambda x: np.exp(-np.mean(x)),
    ):
        assert mean_of_documents(mean)
    for other in (np.median, max, sum, lambda pairs: sum(a == b for a, b in pairs)):
        assert not mean_of_documents(other)


def test_a_resumed_run_scores_nothing_again(tmp_path: Path) -> None:
    options = GateOptions(budget=0.4, log=tmp_path / "run.db")
    first, metrics = gated(Task(), options)
    again = Task()
    for request in again.instances[50:]:  # generated again, with another text than the log's
        request.resps = [Text(request.resps[0])]
    second, same = gated(again, options)
    assert again.scored == []
    assert (second, same) == (first, metrics)


def test_a_log_of_other_documents_or_options_names_the_user_s_options(tmp_path: Path) -> None:
    options = GateOptions(budget=0.4, log=tmp_path / "run.db")
    gated(Task(), options)
    with pytest.raises(LogMismatchError, match=r"--gate_log .* with other documents .*--limit"):
        gated(Task(30), options)
    with pytest.raises(LogMismatchError, match=r"with --gate_budget 0\.4 \(now 0\.5\): give"):
        gated(Task(), replace(options, budget=0.5))


def test_the_metric_that_decides_can_be_chosen() -> None:
    results, _ = gated(Task(), GateOptions(budget=1.0), metric="other", passing=0.25)
    assert results["gatekeeper"]["tasks"]["t"]["wrong"] == 0
    with pytest.raises(BadInputError, match=r"--gate_metric f1: .*acc, other"):
        gated(Task(), GateOptions(budget=1.0), metric="f1")
    with pytest.raises(BadInputError, match=r"--gate_filter x: .*strict, loose"):
        gated(Task(), GateOptions(budget=1.0), filter="x")
    with pytest.raises(BadInputError, match="nothing to gate"):
        Session(GateOptions(), Grading(), settings={}).adopt({})
    with pytest.raises(BadInputError, match="no documents"):
        Session(GateOptions(), Grading(), settings={}).adopt({"t": Task(0)})


def test_an_error_of_a_metric_ends_the_run() -> None:
    """As it does without the gate: it is not a verdict."""
    task = Task()
    task.process_results = lambda doc, results: {}["acc"]  # type: ignore[method-assign]
    with pytest.raises(KeyError):
        gated(task, GateOptions())


def test_options_come_back() -> None:
    parser = argparse.ArgumentParser()
    add_options(parser, "--gate_")
    assert options_of(parser.parse_args([])) == GateOptions()
    given = "--gate_goal errors --gate_budget 0.5 --gate_policy hga --gate_explore 0.2 "
    given += "--gate_seed 3 --gate_log x.db --gate_total 40 --gate_warmup 20"
    expected = GateOptions(
        goal="errors",
        policy="hga",
        budget=0.5,
        total=40,
        warmup=20,
        explore=0.2,
        seed=3,
        log=Path("x.db"),
    )
    assert options_of(parser.parse_args(given.split())) == expected


@pytest.mark.parametrize("given", ["policy cst", "warmup 20", "explore 0.2"])
def test_options_of_the_goal_errors_are_refused_with_another(given: str) -> None:
    parser = argparse.ArgumentParser()
    add_options(parser, "--gate_")
    with pytest.raises(BadInputError, match=f"--gate_{given} is for .*add --gate_goal errors"):
        options_of(parser.parse_args(f"--gate_{given}".split()), "--gate_")


@pytest.mark.parametrize("text", ["0", "-1", "2.5", "many"])
def test_a_total_that_is_no_count_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_options(parser)
    with pytest.raises(SystemExit):
        parser.parse_args(["--total", text])
    assert "a whole number of at least 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "verified"),
    [
        (GateOptions(total=7), 7),
        (GateOptions(total=7, budget=0.5), 7),
        (GateOptions(total=500), N),
        (GateOptions(total=500, budget=0.2), N / 5),
        (GateOptions(goal="errors", total=30, warmup=20), 30),
        (GateOptions(goal="errors", budget=0.2, warmup=40), 40 + (N - 40) / 5),
    ],
    ids=str,
)
def test_a_total_and_the_warmup_say_how_many_are_verified(
    options: GateOptions, verified: float
) -> None:
    task = Task()
    gated(task, options)
    assert verified - 1 <= len(set(task.scored)) <= verified


def test_a_total_that_the_warmup_takes_is_refused() -> None:
    with pytest.raises(BadInputError, match="total=40: the warm-up takes 50 of it"):
        gated(Task(), GateOptions(goal="errors", total=40))


def test_samples_in_every_shape(tmp_path: Path) -> None:
    """Our arrays, OpenAI's two shapes, none; `solution` and `completion`; unknown problems."""
    token = {"token": "a", "bytes": None, "logprob": -0.1}
    chat = {"content": [token | {"top_logprobs": [token, {**token, "token": "b", "logprob": -2}]}]}
    text = {"tokens": ["a"], "token_logprobs": [-0.1], "top_logprobs": [{"a": -0.1, "b": -2}]}
    ours = '{"logprob": [-0.1], "top1": [-0.1], "top2": [-2]}'
    path = tmp_path / "samples.jsonl"
    path.write_text(
        f'{{"task_id": "P/0", "solution": "x", "logprobs": {ours}}}\n'
        f'{{"task_id": "P/0", "completion": "  y", "logprobs": {chat}}}\n'.replace(
            "'", '"'
        ).replace("None", "null")
        + f'{{"task_id": "P/0", "solution": "z", "logprobs": {text}}}\n'.replace("'", '"')
        + '{"task_id": "P/0", "solution": "w"}\n{"task_id": "Q/0", "solution": "v"}\n'
    )
    dataset = Dataset.__new__(Dataset)  # without EvalPlus
    dataset.name, dataset.problems = "humaneval", {"P/0": {"prompt": "def f():\n"}}
    dataset.limit = 1
    samples = [sample.generation for sample in read_samples(path, dataset)]
    assert [g.id for g in samples] == ["P/0/0", "P/0/1", "P/0/2", "P/0/3"]
    assert [g.text for g in samples] == ["x", "def f():\n  y", "z", "w"]
    assert [g.top2.tolist() for g in samples] == [[-2.0], [-2.0], [-2.0], []]
    assert {g.prompt_tokens for g in samples} == {2}
    path.write_text('{"task_id": "Q/0", "solution": "v"}\n')
    with pytest.raises(BadInputError, match="no sample for the first 1 problem of humaneval"):
        read_samples(path, dataset)


@pytest.mark.parametrize(
    ("package", "run"),
    [
        ("lm_eval", lambda: lm_eval.main(["run", "--tasks", "gsm8k"])),
        ("evalplus", lambda: main(["evalplus", "--samples", __file__, "--dataset", "mbpp"])),
    ],
)
def test_without_the_harness_it_says_what_to_install(
    package: str, run: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    assert run() == 2
    name = package.replace("_", "-")
    assert f"(extra {name}): pip install '{name}" in capsys.readouterr().err


def test_the_command_of_the_inspect_plug_in_needs_no_traceback() -> None:
    block = "import runpy, sys; sys.modules['inspect_ai'] = None; "
    code = f"{block}sys.argv[1:] = ['report', 'x.db']; runpy._run_module_as_main({INSPECT!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "(extra inspect): pip install 'inspect-ai" in done.stderr


def test_another_release_of_the_harness_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "version", {"lm-eval": "9.9"}.__getitem__)
    moved = ImportError("cannot import name 'TaskManager'", name="lm_eval.tasks")
    said = str(release.unusable("lm-eval", "0.4.13", extra="lm-eval", error=moved))
    assert said.startswith("lm-eval 9.9 is installed, and this plug-in was made for 0.4.13: ")
    assert said.endswith("pip install 'lm-eval==0.4.13'")
