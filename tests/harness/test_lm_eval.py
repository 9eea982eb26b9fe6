"""docs/lm-eval.md with the harness itself, in an environment of its own: `make test-harness`."""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if find_spec("lm_eval") is None:
    pytest.skip("lm-eval is not installed: run `make test-harness`", allow_module_level=True)

os.environ["HF_DATASETS_OFFLINE"] = os.environ["HF_HUB_OFFLINE"] = "1"

import lm_eval
from killing import killed_when
from lm_eval.tasks import TaskManager

from gatekeeper.adapters.lm_eval import GateOptions, Grading, main, simple_evaluate
from gatekeeper.bundled.serve import ROUTES, Server
from gatekeeper.errors import GatekeeperError
from gatekeeper.maths import MathChecker

pytestmark = pytest.mark.filterwarnings("default")  # the harness's own

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "lm-eval.md").read_text()
TASK = "bundled_math"
LIMIT = 100  # documents, unless a test sets another number


@contextmanager
def serving(**options: Any) -> Iterator[str]:
    server = Server(**options)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"{server.base_url}/chat/completions"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving() as address:
        yield address


@pytest.fixture(autouse=True)
def at_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)  # the task names its data from there


class Included(TaskManager):
    """Without the harness's own thousands of tasks, which take five seconds to list."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more, include_defaults=False)


@pytest.fixture
def without_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lm_eval.tasks.TaskManager", Included)


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The harness's cache of responses: the model answers each question once for all tests."""
    return str(tmp_path_factory.mktemp("cache") / "answers")


def evaluate(url: str, gate: GateOptions | None, **more: Any) -> Any:
    model = "local-chat-completions" if gate is None else "gated-chat"
    arguments = {
        "model": model,
        "model_args": f"model=gatekeeper-bundled,base_url={url},num_concurrent=4,max_retries=1",
        "tasks": [TASK],
        "task_manager": Included(include_path="examples/lm_eval"),
        "limit": LIMIT,
        "apply_chat_template": True,
        "bootstrap_iters": 100,
    }
    if gate is None:
        return lm_eval.simple_evaluate(**arguments | more)
    return simple_evaluate(gate=gate, **arguments | more)


@pytest.mark.usefixtures("without_defaults")
def test_the_page_runs_and_goes_on_after_kill_9(url: str, tmp_path: Path) -> None:
    """The page's own command, after one with its arguments that was killed while the model
    answers."""
    (block,) = re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
    serve, command = block.split("\n", 1)
    assert serve == "python -m gatekeeper.bundled.serve --port 8011 &"
    command = command.replace("http://127.0.0.1:8011/v1/chat/completions", url)
    command = command.replace("run.db", str(tmp_path / "run.db")).replace("\\\n", " ")
    _, *words = [*shlex.split(command), "--output_path", str(tmp_path / "out")]
    killed_when(lambda: answered(tmp_path) >= 50, main, words[words.index("run") :])
    kept = answered(tmp_path)
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert f"Cached requests: {kept}, Requests remaining: {300 - kept}" in done.stderr
    assert "| exact_match@all" in done.stdout.replace("|exact", "| exact")
    assert f"gatekeeper:\n  {TASK}:\n    exact_match (boxed): " in done.stdout
    (file,) = (tmp_path / "out").rglob("results*.json")
    results = json.loads(file.read_text())
    reported = results["gatekeeper"]["tasks"][TASK]
    assert reported["outputs"] == 300
    assert reported["warmup"] == 0
    assert reported["verified"] == len(reported["selected"]) == 0.2 * 300
    rows = results["results"][TASK]
    for pipeline in ("boxed", "last-number"):
        low, value, high = (rows[f"exact_match@{k},{pipeline}"] for k in ("low", "all", "high"))
        assert 0 < low < value < high < 1
    assert results["n-samples"][TASK] == {"original": 300, "effective": 300, "verified": 60}
    assert "exact_match,boxed" not in results["results"][TASK]
    # The page's table, and the harness's own score of the same answers.
    kept_answers = str(tmp_path / "run.db.responses")
    whole = evaluate(url, GateOptions(budget=1.0), limit=None, use_cache=kept_answers)
    table = re.findall(
        r"\| `exact_match` \| (\S+) \| ([\d.]+), ([\d.]+) – ([\d.]+) \| ([\d.]+)", PAGE
    )
    assert [pipeline for pipeline, *_ in table] == ["boxed", "last-number"]
    for pipeline, *figures in table:
        found = [rows[f"exact_match@{k},{pipeline}"] for k in ("all", "low", "high")]
        found.append(whole["results"][TASK][f"exact_match,{pipeline}"])
        # Answers that were made before the kill have no log-probabilities any more.
        assert found == pytest.approx([float(figure) for figure in figures], abs=0.01)
        assert found[1] <= found[3] <= found[2]


def answered(folder: Path) -> int:
    """Responses in the harness's cache."""
    try:
        with closing(sqlite3.connect(folder / "run.db.responses_rank0.db")) as cache:
            (count,) = cache.execute("select count(*) from unnamed").fetchone()
            return int(count)
    except sqlite3.OperationalError:
        return 0


def test_a_budget_of_1_gives_the_harness_s_own_score(url: str, answers: str) -> None:
    """Every number, standard errors included, from answers that were generated twice."""
    own = evaluate(url, None, limit=40)
    gated = evaluate(url, GateOptions(budget=1.0), limit=40, use_cache=answers)
    assert gated["results"] == own["results"]
    assert gated["n-samples"] == own["n-samples"]
    assert 0.2 < own["results"][TASK]["exact_match,boxed"] < 0.9
    rate = gated["gatekeeper"]["tasks"][TASK]["scores"]["exact_match,boxed"]
    assert rate["point"] == rate["low"] == rate["high"] == own["results"][TASK]["exact_match,boxed"]
    # The samples are the harness's too, with what the gate made of each.
    for ours, theirs in zip(gated["samples"][TASK], own["samples"][TASK], strict=True):
        assert ours.pop("gate")["verify"]
        assert ours == theirs


def test_a_part_is_verified_and_the_rest_is_not(url: str, answers: str) -> None:
    gated = evaluate(url, GateOptions(goal="errors", budget=0.4, explore=0.5), use_cache=answers)
    reported, rows = gated["gatekeeper"]["tasks"][TASK], gated["results"][TASK]
    samples = [s for s in gated["samples"][TASK] if s["filter"] == "boxed"]
    verified = [s for s in samples if s["gate"]["verify"]]
    assert reported["selected"] == [f"{TASK}/{s['doc_id']}" for s in verified]
    assert 50 < len(verified) <= 70
    assert all(("exact_match" in s) == s["gate"]["verify"] for s in samples)
    mean = sum(s["exact_match"] for s in verified) / len(verified)
    assert rows["exact_match@verified,boxed"] == pytest.approx(mean)
    assert rows["exact_match@all,boxed"] == reported["scores"]["exact_match,boxed"]["point"]
    assert all(0 < s["gate"]["propensity"] <= 1 for s in samples)


def test_a_run_stopped_while_it_verifies_goes_on(url: str, answers: str, tmp_path: Path) -> None:
    """It ends as an uninterrupted run; none is verified twice, new answers change nothing."""
    calls: list[Any] = []

    def stopping_at(n: int) -> Any:
        manager = Included(include_path="examples/lm_eval")
        load = manager.load

        def loading(tasks: Any) -> Any:
            loaded = load(tasks)
            task = loaded["tasks"][TASK]
            metric = task.process_results

            def counting(doc: Any, results: Any) -> Any:
                calls.append(doc["id"])
                if len(calls) == n:
                    raise KeyboardInterrupt
                return metric(doc, results)

            task.process_results = counting
            return loaded

        manager.load = loading
        return manager

    gate = GateOptions(budget=0.4, log=tmp_path / "run.db")
    with pytest.raises(KeyboardInterrupt):
        evaluate(url, gate, use_cache=answers, task_manager=stopping_at(2 * 26))
    assert len(calls) == 2 * 26
    calls.clear()
    resumed = evaluate(url, gate, use_cache=answers, task_manager=stopping_at(-1))
    whole = evaluate(url, GateOptions(budget=0.4), use_cache=answers)
    assert resumed["gatekeeper"] == whole["gatekeeper"]
    assert resumed["results"] == whole["results"]
    assert len(calls) == 2 * (whole["gatekeeper"]["tasks"][TASK]["verified"] - 25)


NOTED = """
import time

def noted(doc, results):
    with open("{calls}", "a") as calls:
        calls.write(doc["id"] + " " + repr(results[0]) + "\\n")
    time.sleep(0.05)
    return {{"exact_match": float(results[0] == doc["gold"])}}
"""


@pytest.mark.usefixtures("without_defaults")
def test_killed_at_temperature_0_8_and_run_again(url: str, tmp_path: Path) -> None:
    """`--use_cache`, which keeps no sampled answers: those of the gate's log count."""
    example = (ROOT / "examples" / "lm_eval" / f"{TASK}.yaml").read_text()
    head, _, _ = example.partition("metric_list:")
    metric = "process_results: !function utils.noted\nmetric_list:\n  - {metric: exact_match}\n"
    (tmp_path / "noted.yaml").write_text(head.replace(TASK, "noted") + metric)
    utils = (ROOT / "examples" / "lm_eval" / "utils.py").read_text()
    calls = tmp_path / "calls.txt"
    (tmp_path / "utils.py").write_text(utils + NOTED.format(calls=calls))

    def command(seed: int) -> list[str]:
        """With another seed the endpoint gives other answers, as one without seeds does."""
        model = f"model=gatekeeper-bundled,base_url={url},seed={seed},num_concurrent=4"
        return [
            *("run", "--model", "gated-chat", "--model_args", model),
            *("--tasks", "noted", "--include_path", str(tmp_path), "--limit", "30"),
            *("--apply_chat_template", "--gen_kwargs", "temperature=0.8,do_sample=true"),
            *("--use_cache", str(tmp_path / "answers"), "--gate_log", str(tmp_path / "run.db")),
            *("--gate_budget", "0.5", "--output_path", str(tmp_path / "out")),
        ]

    def called() -> list[str]:
        return calls.read_text().splitlines() if calls.exists() else []

    killed_when(lambda: len(called()) >= 7, main, command(1))  # two pipelines of filters for each
    before = called()
    assert 7 <= len(before) < 30
    assert main(command(2)) == 0
    ids = [line.split()[0] for line in called()]
    assert len(set(ids)) == 15
    # Once each; the document whose metrics were under way has them again, of the same answer.
    assert len(ids) <= 2 * 15 + 2
    assert len(set(called())) <= 2 * 15
    (file,) = (tmp_path / "out").rglob("results*.json")
    results = json.loads(file.read_text())
    assert results["gatekeeper"]["run"]["verified"] == 15
    assert results["results"]["noted"]["exact_match@low,boxed"] < 1


GRADED = """
def overlap(doc, results):
    gold, text = set(doc["gold"]), set(str(results[0]))
    f1 = 2 * len(gold & text) / (len(gold) + len(text))
    found = {"f1": f1, "percent": f1, "spurious": float(len(text - gold))}
    return {**found, "corpus": (doc["gold"], str(results[0]))}

def percent(values):
    return 100 * sum(values) / len(values)

def corpus(pairs):
    return sum(gold == text for gold, text in pairs) / len(pairs)

def a_few(documents):
    return only_math(documents).select(range(40))
"""
METRICS = """process_results: !function utils.overlap
metric_list:
  - {metric: f1, aggregation: mean, higher_is_better: true}
  - {metric: percent, aggregation: !function utils.percent, higher_is_better: true}
  - {metric: spurious, aggregation: mean, higher_is_better: false}
  - {metric: corpus, aggregation: !function utils.corpus, higher_is_better: true}
"""
GROUP = """group: both
task: [large, small, twice]
aggregate_metric_list:
  - {metric: f1, weight_by_size: false}
  - {metric: percent, weight_by_size: true, filter_list: boxed}
"""


def graded(folder: Path) -> TaskManager:
    """A group of three tasks with graded metrics, one of them for all documents together; one task
    asks for two responses to a document."""
    example = (ROOT / "examples" / "lm_eval" / f"{TASK}.yaml").read_text()
    head, _, _ = example.partition("metric_list:")
    utils = (ROOT / "examples" / "lm_eval" / "utils.py").read_text()
    (folder / "utils.py").write_text(utils + GRADED)
    for name, documents in (("large", "only_math"), ("small", "a_few"), ("twice", "a_few")):
        text = head.replace(TASK, name).replace("only_math", documents) + METRICS
        if name == "twice":
            text = text.replace("function: take_first", "function: majority_vote")
            text = text.replace(
                "- function: majority_vote",
                "- function: majority_vote\n      - function: take_first",
            )
            text += "repeats: 2\n"
        (folder / f"{name}.yaml").write_text(text)
    (folder / "both.yaml").write_text(GROUP)
    return Included(include_path=str(folder))


def test_graded_metrics_filters_tasks_and_groups(
    url: str, answers: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Budget 1 is the harness's own table; at 0.3 every interval holds what that table has."""
    more = {"tasks": ["both"], "task_manager": graded(tmp_path), "use_cache": answers}
    more["log_samples"] = False
    own = evaluate(url, None, **more)
    whole = evaluate(url, GateOptions(budget=1.0), **more)
    for table in ("results", "groups", "n-samples", "higher_is_better"):
        assert whole[table] == own[table]
    part = evaluate(url, GateOptions(budget=0.3), **more)
    warned = [r.getMessage() for r in caplog.records if "corpus" in r.getMessage()]
    assert any("'small' computes corpus from all documents together" in line for line in warned)
    inside = outside = 0
    for name, rows in own["results"].items():
        for key, value in rows.items():
            metric, _, pipeline = key.partition(",")
            if not pipeline or metric.endswith("_stderr") or metric == "corpus":
                continue
            found = [part["results"][name][f"{metric}@{k},{pipeline}"] for k in ("low", "high")]
            inside += found[0] <= value <= found[1]
            outside += not found[0] <= value <= found[1]
            higher = part["higher_is_better"][name]
            assert higher[f"{metric}@all"] == (metric != "spurious")
    assert inside + outside == 21
    assert outside <= 1
    assert "corpus@verified,boxed" in part["results"]["large"]
    assert not {"corpus@all,boxed", "corpus,boxed"} & part["results"]["large"].keys()
    verified = {n: part["n-samples"][n]["verified"] for n in ("large", "small", "twice")}
    assert sum(verified.values()) == round(0.3 * 180)
    assert 11 <= verified["small"] <= 13  # the draws are spread over the tasks
    assert "math@all" not in part["results"]["both"]
    with pytest.raises(GatekeeperError, match=r"--gate_metric corpus: .*all documents together"):
        evaluate(url, GateOptions(), grading=Grading(metric="corpus"), **more)


ODD = """dataset_path: json
dataset_kwargs: {data_files: {test: DATA}}
test_split: test
output_type: generate_until
doc_to_text: "{{n}}"
doc_to_target: "{{n}}"
metric_list:
  - {metric: some, aggregation: mean, higher_is_better: true}
  - {metric: each, aggregation: mean, higher_is_better: true}
"""
ODD_VALUES = """
def values(document, responses):
    n = document["n"]
    few = {"few": 1.0} if n > 9 else {}
    return {"some": float("nan") if n % 2 else 1.0, "each": float(n % 2)} | few
"""


def test_documents_without_a_number_and_tasks_without_a_document(tmp_path: Path) -> None:
    """NaN of the metric that decides is neither right nor wrong, and the other metrics keep the
    document; where nothing is drawn the rows are bounds, in the group too."""
    (tmp_path / "odd_values.py").write_text(ODD_VALUES)
    for name, size in (("odd", 40), ("one", 1)):
        data = tmp_path / f"{name}.jsonl"
        data.write_text("\n".join(json.dumps({"n": n}) for n in range(size)))
        text = ODD.replace("DATA", str(data)) + "process_results: !function odd_values.values\n"
        (tmp_path / f"{name}.yaml").write_text(f"task: {name}\n{text}")
    group = "group: both\ntask: [odd, one]\naggregate_metric_list: [{metric: each}]\n"
    (tmp_path / "both.yaml").write_text(group)

    def run(budget: float, tasks: str, **more: Any) -> Any:
        manager = Included(include_path=str(tmp_path))
        gate = GateOptions(budget=budget)
        given = {"tasks": [tasks], "task_manager": manager, "bootstrap_iters": 0}
        return simple_evaluate("dummy", gate=gate, **given | more)

    part = run(0.3, "odd")
    run_, row = part["gatekeeper"]["run"], part["results"]["odd"]
    assert run_["wrong"] == 0
    # A document without a number leaves its budget to others.
    assert 0 < run_["verified"] <= 12 < run_["verified"] + run_["could_not_tell"]
    for metric, whole in (("some", 1.0), ("each", 0.5), ("few", 1.0)):
        low, value, high = (row[f"{metric}@{end},none"] for end in ("low", "all", "high"))
        assert 0 < low <= whole <= high <= 1
        assert low <= value <= high
    assert 0.3 < row["each@all,none"] < 0.7  # 0 of those with a number, 1 of the others
    assert run(1.0, "odd")["results"]["odd"]["each,none"] == 0.5

    few = run(0.3, "both", limit=2)  # 0 of 1 document, 0 or 1 of 2
    assert few["results"]["one"].items() >= {"each@low,none": 0.0, "each@high,none": 1.0}.items()
    assert "each@all,none" not in few["results"]["one"]
    both = few["groups"]["both"]
    assert both["each@low,none"] < 1 / 80 < 1 / 3 < both["each@high,none"]  # one document of three


def test_without_log_probabilities_it_draws(caplog: pytest.LogCaptureFixture) -> None:
    with serving(refuse_logprobs=True) as refusing:
        short = {"limit": 60, "gen_kwargs": "max_gen_toks=4"}
        gated = evaluate(refusing, GateOptions(budget=0.4), **short)
    said = [r.getMessage() for r in caplog.records if r.name == "gatekeeper"]
    assert sum("came without log-probabilities" in text for text in said) == 1
    reported = gated["gatekeeper"]["tasks"][TASK]
    assert reported["missing_signal"] == reported["outputs"] == 60
    assert reported["verified"] == 24


@pytest.mark.parametrize("at_once", [1, 4])
def test_an_answer_that_the_server_broke_off_is_asked_for_again(
    at_once: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One of twenty, at first; then all, which ends the run with nothing of them in its cache."""
    path, asked, broken = "/v1/chat/completions", itertools.count(), {7}
    answer = ROUTES[path]

    def sometimes(*given: Any) -> Any:
        response: Any = answer(*given)
        if next(asked) in broken:
            response["choices"][0] |= {"finish_reason": "abort"}
        return response

    monkeypatch.setitem(ROUTES, path, sometimes)
    with serving() as url:
        arguments = f"model=gatekeeper-bundled,base_url={url},num_concurrent={at_once}"
        options = {"limit": 20, "use_cache": str(tmp_path / "run.db.responses")}
        gated = evaluate(url, GateOptions(budget=0.5), model_args=arguments, **options)
        assert gated["gatekeeper"]["tasks"][TASK]["outputs"] == 20
        assert next(asked) == 21
        assert answered(tmp_path) == 20
        broken |= set(range(999))
        with pytest.raises(GatekeeperError, match="broke an answer off"):
            evaluate(url, GateOptions(budget=0.5), model_args=arguments, **options | {"limit": 21})
    assert answered(tmp_path) == 20


def test_a_verifier_that_never_works_is_named(
    url: str, answers: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def verify(self: MathChecker, generation: Any, task: Any) -> Any:
        raise OSError("no daemon")

    monkeypatch.setattr(MathChecker, "verify", verify)
    grading = Grading(verifier="math")
    evaluate(url, GateOptions(budget=0.4), grading=grading, limit=59, use_cache=answers)
    said = [r.getMessage() for r in caplog.records if r.name == "gatekeeper"]
    assert sum("could not tell whether" in text for text in said) == 1
    assert any("no daemon" in text for text in said)


def test_a_verifier_in_place_of_the_metrics(url: str, answers: str) -> None:
    gated = evaluate(
        url, GateOptions(budget=1.0), grading=Grading(verifier="math"), use_cache=answers
    )
    own = evaluate(url, GateOptions(budget=1.0), use_cache=answers)
    rows = gated["results"][TASK]
    # It knows more ways to write an answer than a comparison of texts.
    assert 0 <= rows["math@all,boxed"] - own["results"][TASK]["exact_match,boxed"] < 0.1
    assert not any("exact_match" in name for name in rows)


def test_a_task_sets_its_own_metric(url: str, answers: str, tmp_path: Path) -> None:
    """The page's YAML, and the same on the other pipeline with a threshold that none reaches."""
    (yaml,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    example = (ROOT / "examples" / "lm_eval" / f"{TASK}.yaml").read_text()
    head, _, rest = example.partition("filter_list:\n")
    tail = rest[rest.index("metric_list:") :]
    (tmp_path / "utils.py").write_text((ROOT / "examples" / "lm_eval" / "utils.py").read_text())
    for name, wrong in (("own", None), ("never", 100)):
        text = head.replace(f"task: {TASK}", f"task: {name}") + yaml + tail
        (tmp_path / f"{name}.yaml").write_text(
            text if wrong is None else text.replace("passing: 1.0", "passing: 2.0")
        )
        manager = Included(include_path=str(tmp_path))
        gated = evaluate(
            url, GateOptions(budget=1.0), tasks=[name], task_manager=manager, use_cache=answers
        )
        score = gated["results"][name]["exact_match,boxed"]
        expected = round(LIMIT * (1 - score)) if wrong is None else wrong
        assert gated["gatekeeper"]["tasks"][name]["wrong"] == expected


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"grading": Grading(metric="f1")}, "--gate_metric f1: .*exact_match"),
        ({"grading": Grading(filter="none")}, "--gate_filter none: .*boxed, last-number"),
        ({"grading": Grading(verifier="judge")}, "verifier='judge' is unknown"),
        ({"tasks": ["nothing"]}, "cannot be loaded"),
        ({"apply_chat_template": False}, "add --apply_chat_template"),
        ({"predict_only": True}, "nothing to gate"),
        ({"gate": GateOptions(budget=3.0)}, "fraction=3.0"),
        ({"gate": GateOptions(warmup=7)}, "gate.warmup=7 is for finding errors"),
        ({"gate": 0.2}, "gate=0.2: give GateOptions"),
        ({"grading": "f1"}, "grading='f1': give a Grading, or None"),
        ({"gate": GateOptions(log=Path("/nowhere/run.db"))}, "its folder does not exist"),
    ],
)
def test_bad_input_is_refused(url: str, answers: str, wrong: Any, said: str) -> None:
    with pytest.raises(GatekeeperError, match=said):
        evaluate(url, wrong.pop("gate", GateOptions()), use_cache=answers, **wrong)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("--tasks nothing", "Tasks not found: nothing"),
        (f"--tasks {TASK} --gate_budget 0", "--gate_budget: '0': give a number"),
        (f"--tasks {TASK} --gate_policy luck", "--gate_policy: 'luck' is unknown"),
        (f"--tasks {TASK} --gate_passing nan", "--gate_passing: 'nan': give a number"),
        ("--tasks {folder}/empty.yaml", "cannot be loaded: StopIteration"),
        ("--tasks {folder}/missing.yaml", "cannot be loaded: FileNotFoundError"),
        (f"--tasks {TASK}", "base_url='http://127.0.0.1:9/v1' does not answer"),
    ],
)
@pytest.mark.usefixtures("without_defaults")
def test_bad_input_on_the_command_line(wrong: str, said: str, tmp_path: Path, capfd: Any) -> None:
    """One line after the harness's own, no traceback, and 2."""
    example = (ROOT / "examples" / "lm_eval" / f"{TASK}.yaml").read_text()
    (tmp_path / "utils.py").write_text((ROOT / "examples" / "lm_eval" / "utils.py").read_text())
    (tmp_path / "no.jsonl").write_text("")
    for name, data in (("empty", tmp_path / "no.jsonl"), ("missing", tmp_path / "none.jsonl")):
        text = example.replace("gatekeeper/bundled/tasks.jsonl", str(data))
        (tmp_path / f"{name}.yaml").write_text(text)
    command = f"{wrong.format(folder=tmp_path)} --model gated-chat --apply_chat_template --limit 60"
    command += " --model_args base_url=http://127.0.0.1:9/v1 --include_path examples/lm_eval"
    assert main(command.split()) == 2
    last = capfd.readouterr().err.strip().splitlines()[-1]
    assert last.startswith("gatekeeper: "), last
    assert said in last
