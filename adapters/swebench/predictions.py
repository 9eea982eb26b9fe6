"""The predictions of a file: a patch for each instance."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gatekeeper.adapters.harness.generation import generation_of
from gatekeeper.errors import BadInputError
from gatekeeper.io.jsonl import field, read_jsonl
from gatekeeper.limits import MAX_ID, is_id
from gatekeeper.types import Generation

__all__ = ["Prediction", "fingerprint", "read_predictions"]


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """One prediction. `generation.text` is the patch, `generation.id` the instance.

    `generation.features` has `patch_lines` (added and removed) and `patch_files`, and what the
    file's field `features` adds.
    """

    model: str
    generation: Generation

    @property
    def instance(self) -> str:
        return self.generation.id

    @property
    def patch(self) -> str:
        return self.generation.text

    @property
    def folder(self) -> str:
        """The name of the model's folder in SWE-bench's logs."""
        return self.model.replace("/", "__")

    def as_dict(self) -> dict[str, str]:
        """The prediction in SWE-bench's own form."""
        return {
            "instance_id": self.instance,
            "model_name_or_path": self.model,
            "model_patch": self.patch,
        }


def read_predictions(path: str | Path) -> list[Prediction]:
    """The predictions of a file, in order.

    Parameters
    ----------
    path : path
        What SWE-bench reads: JSON Lines, or for a suffix `.json` a list of predictions or an object
        of them by instance. A `model_patch` of null is an empty one, as for SWE-bench.

    Raises
    ------
    BadInputError
        For a bad prediction, for two of one instance, and for a file without predictions.
    """
    path = Path(path)
    seen: set[str] = set()

    def parse(line: Mapping[str, Any]) -> Prediction:
        found = _prediction(line)
        if found.instance in seen:
            raise BadInputError(
                f"instance_id {found.instance!r} has a prediction already: give one file for each "
                "model"
            )
        seen.add(found.instance)
        return found

    if path.suffix == ".json":
        found = [_numbered(path, at, entry, parse) for at, entry in _entries(path)]
    else:
        found = list(read_jsonl(path, parse))
    if not found:
        raise BadInputError(f"{path} has no prediction")
    return found


def fingerprint(predictions: Iterable[Prediction]) -> str:
    """A hash of the patches in their order: another one is another run."""
    made = hashlib.sha256()
    for prediction in predictions:
        made.update(json.dumps(prediction.as_dict()).encode())
    return made.hexdigest()[:16]


def _entries(path: Path) -> Sequence[tuple[str, Any]]:
    """The position of each prediction in a JSON file, and its value."""
    try:
        whole = json.loads(path.read_bytes())
    except OSError as e:
        raise BadInputError(f"{path} cannot be read: {e.strerror}") from e
    except (ValueError, RecursionError) as e:
        raise BadInputError(f"{path} is not JSON: {e}") from None
    if isinstance(whole, dict):
        return list(whole.items())
    if isinstance(whole, list):
        return [(f"prediction {number}", entry) for number, entry in enumerate(whole, 1)]
    raise BadInputError(f"{path}: a list of predictions, or an object of them, is needed")


def _numbered(path: Path, at: str, entry: Any, parse: Any) -> Prediction:
    try:
        if not isinstance(entry, dict):
            raise BadInputError(f"a JSON object is needed, not {type(entry).__name__}")
        found: Prediction = parse(entry)
    except BadInputError as e:
        raise BadInputError(f"{path}, {at}: {e}") from None
    return found


def _prediction(line: Mapping[str, Any]) -> Prediction:
    instance = field(line, "instance_id", str)
    if not is_id(instance):
        raise BadInputError(
            f"field 'instance_id' is {instance!r:.80}: a string of 1 to {MAX_ID} bytes is needed"
        )
    is_null = "model_patch" in line and line["model_patch"] is None
    patch = "" if is_null else field(line, "model_patch", str)
    own = {
        "patch_lines": len(re.findall(r"^(?:\+(?!\+\+ )|-(?!-- ))", patch, re.MULTILINE)),
        "patch_files": len(re.findall(r"^\+\+\+ ", patch, re.MULTILINE)),
    }
    features = {**own, **field(line, "features", dict, default={})}
    generation = generation_of(instance, patch, line.get("logprobs"), features=features)
    return Prediction(field(line, "model_name_or_path", str), generation)
