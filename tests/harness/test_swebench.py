"""docs/swebench.md with SWE-bench itself, in an environment of its own: `make test-harness`.

The instance and its image are our own (own_instance.py), so that no registry is needed.
"""

from __future__ import annotations

import gc
import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if find_spec("swebench") is None:
    pytest.skip("swebench is not installed: run `make test-harness`", allow_module_level=True)

import own_instance
from docker.errors import NotFound
from swebench.harness import run_evaluation

from gatekeeper.adapters.swebench.harness import Evaluation
from gatekeeper.adapters.swebench.predictions import read_predictions
from gatekeeper.cli import main
from gatekeeper.errors import BadInputError, GatekeeperError
from gatekeeper.sandbox.engine import connect
from gatekeeper.types import Verdict

pytestmark = pytest.mark.filterwarnings("default")  # the harness's own

PAGE = (Path(__file__).parents[2] / "docs" / "swebench.md").read_text()
GATED = shlex.split(re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)[0])
LOGS = Path("logs", "run_evaluation")
CONTAINERS = f"sweb.eval.ours-{own_instance.MARK}"  # how their names begin


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    for program in ("docker", "git", "ldd", "patch"):
        if shutil.which(program) is None:
            pytest.skip(f"there is no {program} here, of which the instance's image is made")
    try:
        client = connect()
    except GatekeeperError as e:
        pytest.skip(f"docker: {e}")
    with closing(client):
        yield client


@pytest.fixture(scope="module")
def repository(
    client: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[own_instance.Repository]:
    made = own_instance.Repository(tmp_path_factory.mktemp("repository"))
    try:
        own_instance.build(client, made)
        yield made
    finally:
        for container in client.containers.list(all=True, filters={"name": CONTAINERS}):
            container.remove(force=True)
        for image in client.images.list(own_instance.REPOSITORY):
            for tag in image.tags:
                if tag.startswith(own_instance.IMAGE):
                    client.images.remove(tag, force=True)


def write(
    place: Path, repository: own_instance.Repository, patches: Sequence[str | None]
) -> list[dict[str, Any]]:
    """The data set and the predictions of the page's command, one instance for each patch."""
    instances = [
        repository.instance(f"ours-{own_instance.MARK}__numbers-{i}") for i in range(len(patches))
    ]
    (place / "data.json").write_text(json.dumps(instances))
    with (place / "preds.jsonl").open("w") as file:
        for instance, patch in zip(instances, patches, strict=True):
            line = {"instance_id": instance["instance_id"], "model_patch": patch}
            file.write(json.dumps(line | {"model_name_or_path": "our/model"}) + "\n")
    return instances


def command(**options: str) -> list[str]:
    """The page's command, with options in the place of its own."""
    words = GATED[1:]
    for name, value in {"dataset": "data.json", **options}.items():
        flag = f"--{name.replace('_', '-')}"
        if flag in words:
            words = [*words[: words.index(flag)], *words[words.index(flag) + 2 :]]
        words += [flag, value]
    return words


@pytest.fixture(autouse=True)
def temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Locks of run ids are in a folder of the test: others on this machine use the same ids."""
    monkeypatch.setenv("TMPDIR", str(tmp_path_factory.mktemp("temporary")))
    monkeypatch.setattr(tempfile, "tempdir", None)  # read the variable again


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Close here what SWE-bench leaves open: later, pytest would turn its warnings into errors."""
    yield
    gc.collect()


def run(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    """What the command prints to standard output."""
    returned = main(words)
    out, err = capsys.readouterr()
    assert returned == code, err[-3000:]
    return out


def test_verdicts_of_the_harness(
    client: Any,
    repository: own_instance.Repository,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Right, wrong, one that does not apply, an empty one, no image: and the harness's counts."""
    monkeypatch.chdir(tmp_path)
    right = repository.patch(own_instance.RIGHT)
    wrong = repository.patch("    return min(values)\n")
    foreign = right.replace("len(values)", "size(values)")
    instances = write(tmp_path, repository, [right, wrong, foreign, "", None, right, wrong])
    instances[5]["image"] = "127.0.0.1:9/none:latest"  # no registry is there
    Path("data.json").write_text(json.dumps(instances))
    words = [*command(budget="1", workers="3"), "--json"]
    found = json.loads(run(capsys, *words, "--out", "out.jsonl", code=1))
    lines = map(json.loads, Path("out.jsonl").read_text().splitlines())
    verdicts = {line["id"][-1]: line for line in lines}
    assert {number: line["verdict"] for number, line in verdicts.items()} == {
        number: ("passed", "failed", "failed", "", "", "infra_error", "failed")[int(number)]
        for number in "01256"
    }
    assert verdicts["0"]["detail"] == "FAIL_TO_PASS 1 of 1, PASS_TO_PASS 2 of 2"
    assert verdicts["1"]["detail"] == "FAIL_TO_PASS 0 of 1, PASS_TO_PASS 1 of 2"
    assert verdicts["2"]["detail"] == "the patch does not apply"
    assert "Error creating container" in verdicts["5"]["detail"]
    theirs = json.loads(Path("our__model.gatekeeper.json").read_text())
    counts = {name: len(theirs[f"{name}_ids"]) for name in found["swebench"]}
    assert found["swebench"] == counts
    assert counts == {"resolved": 1, "unresolved": 2, "error": 2, "empty_patch": 2}
    assert not client.containers.list(all=True, filters={"name": CONTAINERS})
    # Again, with the image there: only that instance is evaluated, and all is known.
    Path("data.json").write_text(
        json.dumps([repository.instance(i["instance_id"]) for i in instances])
    )
    kept = {file: file.stat().st_mtime_ns for file in LOGS.rglob("report.json")}
    found = json.loads(run(capsys, *words))
    assert {file: file.stat().st_mtime_ns for file in kept} == kept
    theirs = json.loads(Path("our__model.gatekeeper.json").read_text())
    rate = found["resolve_rate"]
    assert rate["low"] == rate["high"] == rate["point"]
    assert rate["point"] == theirs["resolved_instances"] / theirs["total_instances"] == 2 / 7
    # The reports of the run say the same, without an evaluation.
    recorded = ["swebench", "--predictions", "preds.jsonl", "--json", "--budget", "1"]
    recorded += ["--reports", str(LOGS / "gatekeeper")]
    assert json.loads(run(capsys, *recorded))["resolve_rate"] == rate
    # Reports of other patches are not taken for these.
    write(tmp_path, repository, [wrong, right])
    assert main(command(budget="1", log="other.db")) == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert "another patch" in said
    assert "--run-id" in said


def test_tests_that_do_not_end_are_not_a_verdict(
    repository: own_instance.Repository,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    endless = repository.patch("    while True: pass\n")
    write(tmp_path, repository, [endless])
    said = run(capsys, *command(budget="1", timeout="3", run_id="endless"), code=1)
    assert "resolve rate: between 0.0000 and 1.0000, no estimate" in said
    assert "Test timed out after 3 seconds" in said


def test_a_container_removed_by_another_program_costs_no_result(
    client: Any,
    repository: own_instance.Repository,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """SWE-bench's report inspects every container of the engine that it has listed."""
    monkeypatch.chdir(tmp_path)
    [instance] = write(tmp_path, repository, [repository.patch(own_instance.RIGHT)])
    other = client.containers.create(instance["image"], name=f"other-{own_instance.MARK}")
    inspect = type(client.containers).get

    def late(containers: Any, wanted: str) -> Any:
        if wanted == other.id:
            with suppress(NotFound):
                other.remove()
        return inspect(containers, wanted)

    monkeypatch.setattr(type(client.containers), "get", late)
    found = json.loads(run(capsys, *command(budget="1", run_id="beside"), "--json"))
    assert found["resolve_rate"]["point"] == 1
    with pytest.raises(NotFound):
        other.reload()
    assert json.loads(Path("our__model.beside.json").read_text())["resolved_instances"] == 1


def written() -> dict[Path, int]:
    """When each report was written, but for those that are empty so far."""
    found = ((file, file.stat()) for file in LOGS.rglob("report.json"))
    return {file: stat.st_mtime_ns for file, stat in found if stat.st_size}


def test_the_page_s_command_goes_on_after_kill_9(
    client: Any,
    repository: own_instance.Repository,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, repository, [repository.patch(own_instance.RIGHT)] * 6)
    words = command(budget="0.5", workers="1", run_id="killed")
    program = [str(Path(sys.executable).with_name("gatekeeper")), *words]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(program, **quiet) as first:
        while first.poll() is None and not written():
            time.sleep(0.02)
        first.send_signal(signal.SIGKILL)
    assert first.returncode == -signal.SIGKILL
    kept = written()
    assert 1 <= len(kept) < 3
    folder = next(iter(kept)).parent.parent
    for instance in {p.instance for p in read_predictions("preds.jsonl")}:
        (folder / instance).mkdir(exist_ok=True)
        if (report := folder / instance / "report.json") not in kept:
            report.write_text("{")  # as if killed while it was written
    found = json.loads(run(capsys, *words, "--json"))
    assert kept.items() <= written().items()
    assert len(list(LOGS.rglob("report.json"))) == found["verified"] == 3
    assert not client.containers.list(all=True, filters={"name": CONTAINERS})


def test_stopping_removes_the_containers(
    client: Any,
    repository: own_instance.Repository,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As at Ctrl-C: evaluations under way get no verdict, and no other one begins."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, repository, [repository.patch("    while True: pass\n")] * 2)
    predictions = read_predictions("preds.jsonl")
    evaluation = Evaluation("data.json", "test", predictions, run_id="stopped", timeout=600)
    with closing(evaluation), ThreadPoolExecutor(1) as pool:
        under_way = pool.submit(evaluation.check, predictions[0])
        while not list(LOGS.rglob("eval.sh")) and not under_way.done():
            time.sleep(0.02)
        evaluation.stop()
        found = under_way.result(), evaluation.check(predictions[1])
    assert [outcome.verdict for outcome in found] == [Verdict.INFRA_ERROR] * 2
    assert not list(LOGS.rglob("report.json"))
    assert not client.containers.list(all=True, filters={"name": CONTAINERS})


def test_one_run_at_a_time_has_a_run_id(
    repository: own_instance.Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In another folder too: a run begins by removing the containers that have its names."""
    predictions, run_id = [], "twice"
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / folder)
        write(Path(), repository, [repository.patch(own_instance.RIGHT)])
        predictions = read_predictions("preds.jsonl")
        if folder == "first":
            first = Evaluation("data.json", "test", predictions, run_id=run_id, timeout=60)
    with closing(first), pytest.raises(BadInputError, match=f"--run-id {run_id}: another run"):
        Evaluation("data.json", "test", predictions, run_id=run_id, timeout=60)
    with closing(Evaluation("data.json", "test", predictions, run_id=run_id, timeout=60)) as again:
        assert again.check(predictions[0]).verdict is Verdict.PASSED


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"dataset": "none.json"}, "--dataset none.json (--split test) cannot be loaded"),
        ({"dataset": "bare.json"}, "no usable field 'image'"),
        ({"dataset": "other.json"}, "(--split test) lacks the instances of 1 prediction, "),
        ({"run_id": "a/b"}, "--run-id 'a/b' is part of the names of containers"),
    ],
)
def test_bad_input_is_one_line_and_2(
    options: dict[str, str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    bare = {"instance_id": "a", "repo": "x/y", "FAIL_TO_PASS": [], "PASS_TO_PASS": []}
    Path("bare.json").write_text(json.dumps([bare]))
    Path("other.json").write_text(json.dumps([bare | {"instance_id": "b"}]))
    line = {"instance_id": "a", "model_name_or_path": "m", "model_patch": "x"}
    Path("preds.jsonl").write_text(json.dumps(line) + "\n")
    given = {"dataset": "bare.json", **options}
    assert main(command(**given)) == 2
    assert said in capsys.readouterr().err.strip().splitlines()[-1]


def test_another_release_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """SWE-bench 4's `run_instance` took other arguments."""

    def run_instance(  # its own signature
        test_spec: Any, pred: Any, rm_image: bool, force_rebuild: bool, client: Any, run_id: str
    ) -> None:
        raise AssertionError

    monkeypatch.setattr(run_evaluation, "run_instance", run_instance)
    monkeypatch.chdir(tmp_path)
    line = {"instance_id": "a", "model_name_or_path": "m", "model_patch": "x"}
    Path("preds.jsonl").write_text(json.dumps(line) + "\n")
    assert main(command()) == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert "this plug-in was made for 5.0.2" in said
    with suppress(FileNotFoundError):
        assert not list(LOGS.iterdir())
