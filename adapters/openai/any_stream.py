"""A stream of any provider: chunks of OpenAI's shape are read at once, others at the end.

The first chunk that has the shape of a provider decides whose stream it is: chunks before it, such
as those with a usage alone, may have none.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

from gatekeeper.adapters.openai.stream import StreamReader, is_chunk
from gatekeeper.adapters.positions import Scope
from gatekeeper.errors import BadInputError
from gatekeeper.io.providers import PROVIDERS
from gatekeeper.types import Generation

__all__ = ["AnyStream"]


class AnyStream:
    """Collects the chunks of one stream, and reads them with the reader of their provider.

    Parameters
    ----------
    scope : {"content", "reasoning", "all"}
        Which tokens count where the stream has reasoning beside the answer.
    strict : bool
        Whether a value that is not a chunk raises BadInputError; otherwise it is ignored.
    """

    def __init__(self, *, scope: Scope, strict: bool) -> None:
        self._scope: Scope = scope
        self._strict = strict
        self._chunks: list[Any] = []  # until the provider is known; if it is not OpenAI, all
        self._openai: StreamReader | None = None
        self._other: ModuleType | None = None
        self._begun: set[int] = set()  # outputs of another provider's stream, by index
        self._ended: set[int] = set()
        self._known = False

    @property
    def id(self) -> Any:
        """The id of the response; None before it is known."""
        return None if self._openai is None else self._openai.id

    @property
    def needs_finish_reason(self) -> bool:
        """Whether only a finish reason shows that an output is complete.

        False once a provider's own mark of the end has arrived for every output.
        """
        return not self._all_ended

    def add(self, chunk: Any) -> None:
        """Add the next chunk or event. Raises BadInputError only if strict."""
        if self._openai is not None:
            self._openai.add(chunk)
            return
        self._chunks.append(chunk)
        if self._other is not None:
            self._note_ends(chunk)
        elif self._find_reader(chunk):
            for each in self._chunks:
                self._note_ends(each)

    def is_complete(self, n: int) -> bool:
        """Whether at least n outputs are complete, and none is incomplete."""
        if self._openai is None:
            return self._all_ended and len(self._ended) >= n
        return bool(self._openai.finished) and self._openai.is_complete(n)

    def generations(self) -> list[Generation]:
        """The outputs so far. Raises BadInputError if the provider is unknown."""
        if self._other is not None:
            found: list[Generation] = self._other.read(
                self._chunks, scope=self._scope, skip_forced=False
            )
            return found
        if self._openai is None:
            self._read_as_openai()
        assert self._openai is not None
        outputs = self._openai.generations()
        if not outputs and not self._known:
            raise BadInputError(
                "no chunk of the stream has the shape of a known provider's: pass its text: "
                "gate.maybe_verify(Generation(id, text), task)"
            )
        return outputs

    @property
    def _all_ended(self) -> bool:
        return bool(self._ended) and self._ended >= self._begun

    def _note_ends(self, chunk: Any) -> None:
        """Note which outputs a chunk continues, and which it ends. Raises as `add`."""
        assert self._other is not None
        try:
            ends: dict[int, bool] = self._other.ends(chunk)
        except BadInputError:
            if self._strict:
                raise
            return
        self._begun.update(ends)
        self._ended.update(index for index, is_last in ends.items() if is_last)

    def _find_reader(self, chunk: Any) -> bool:
        """Whether the stream is another provider's than OpenAI, as this chunk shows."""
        if is_chunk(chunk):
            self._known = True
            self._read_as_openai()
            return False
        for provider in PROVIDERS.values():
            if provider.streams:
                module = import_module(provider.reader)
                if module.recognises([chunk]):
                    self._other = module
                    return True
        return False

    def _read_as_openai(self) -> None:
        self._openai = StreamReader(scope=self._scope, strict=self._strict)
        first, self._chunks = self._chunks, []
        for chunk in first:
            self._openai.add(chunk)
