"""An answer as a stream: its frames are sent as they come, and its outputs are decided on once.

That is before the last frame, with which a client stops reading.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from gatekeeper.adapters.openai.stream import StreamReader
from gatekeeper.gateway import results
from gatekeeper.gateway.answer_edit import Edits, object_of
from gatekeeper.gateway.calls import Call
from gatekeeper.gateway.codings import CodingError
from gatekeeper.gateway.events import TOO_LONG, Frames, is_last, read_frame
from gatekeeper.gateway.outputs import Decided, Decision, Outputs, ended
from gatekeeper.gateway.refusal import envelope

__all__ = ["StreamedAnswer"]


class StreamedAnswer:
    """One stream: what has come of it, and the decision on its outputs.

    Parameters
    ----------
    call : Call
    edits : Edits
        Of the JSON in a frame.
    outputs : Outputs
    write : callable
        Sends bytes to the caller.
    note : callable
        Gets each new state of a Response (Responses API), which may be read before its stream ends.
    """

    def __init__(
        self,
        call: Call,
        edits: Edits,
        outputs: Outputs,
        *,
        write: Callable[[bytes], Awaitable[None]],
        note: Callable[[Any], None],
    ) -> None:
        self._call, self._edits, self._outputs = call, edits, outputs
        self._write, self._note = write, note
        self._frames = Frames()
        self._reader = StreamReader(scope=call.settings.scope)
        self._response: Any = None  # as noted last
        self._ended = False  # the frames that follow have nothing of an output
        self._decision: Decision | None = None

    async def add(self, piece: bytes) -> None:
        """Send the frames that are complete with the next piece of the body."""
        passing: list[bytes] = []
        unread: list[bytes] = []  # data of frames that are sent before they are read
        for frame in self._frames.add(piece):
            whole = not self._frames.given_up
            data, new = read_frame(frame, self._edits) if whole else (b"", frame)
            if self._ended or not is_last(data):
                passing.append(new)
                unread.append(data)
                continue
            if passing:
                await self._send(passing, unread)
            self._read([data])
            passing, unread = [await self._end(new)], []
        await self._send(passing, unread)

    async def finish(self) -> None:
        """Send what is left when the body has ended."""
        last = self._frames.rest  # of an incomplete frame, which nothing may follow
        if not self._ended:
            last = await self._end(last)
        if last:
            await self._write(last)

    async def cut(self) -> None:
        """Send what is left when the body has ended early."""
        await self._decide()
        await self._write(self._frames.rest)

    async def leave(self) -> None:
        """Decide although the caller has left, if it has all outputs."""
        if self._reader.is_complete(self._call.n):
            await self._decide()

    async def _send(self, passing: Sequence[bytes], unread: Sequence[bytes]) -> None:
        await self._write(b"".join(passing))
        if not self._ended:
            self._read(unread)

    def _read(self, unread: Iterable[bytes]) -> None:
        for data in unread:
            if (value := object_of(data)) is not None:
                self._reader.add(value)
        if self._reader.response is not self._response:
            self._response = self._reader.response
            self._note(self._response)

    async def _end(self, last: bytes) -> bytes:
        """Decide; returns the result and the last frame, or an error in place of the frame."""
        self._ended = True
        decided = await self._decide()
        if self._frames.given_up:  # in the middle of a frame, where a comment would break it
            return last
        if self._call.waits:
            await self._outputs.verdicts(decided)
        comment = results.comment(str(self._call.settings.id), decided)
        if not self._frames.have_ids:
            comment += b"\n"
        if self._call.blocks and (wrong := results.wrong(decided)):
            last = b"event: error\ndata: %s\n\n" % envelope(422, "verification_failed", wrong)
        return comment + last

    async def _decide(self) -> list[Decided]:
        """Decide on the outputs, unless that has begun: the gate takes each id once."""
        if self._decision is None:
            settings, reader = self._call.settings, self._reader
            self._decision = self._outputs.decide(
                lambda: self._outputs.of_stream(reader, settings),
                settings,
                unreadable=CodingError(TOO_LONG) if self._frames.given_up else None,
            )
        return await ended(self._decision)
