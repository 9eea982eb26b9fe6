"""The tests' side of the connection: makes the stand-ins of the candidate's objects."""

from __future__ import annotations

import contextlib
import functools
import os
import socket
import sys
import types
from collections.abc import Iterable
from typing import Any

from gatekeeper.sandbox.inside import exceptions, facts, packages, within
from gatekeeper.sandbox.inside.asserting import Asserting, name_of
from gatekeeper.sandbox.inside.classes import candidate_class, instance, library_class
from gatekeeper.sandbox.inside.decisions import Decisions
from gatekeeper.sandbox.inside.guard import (
    EXCUSED,
    RAISED,
    Guard,
    RefusedError,
    failures,
    is_failure,
    parts,
)
from gatekeeper.sandbox.inside.handed_over import HandedOver
from gatekeeper.sandbox.inside.kinds import (
    Inner,
    RemoteClass,
    given_back,
    inner,
    is_stand_in,
    kind_of,
)
from gatekeeper.sandbox.inside.looks import OPINIONS, Looks
from gatekeeper.sandbox.inside.offered import claimed
from gatekeeper.sandbox.inside.operations import (
    KEEPS,
    NAMED,
    OPERATIONS,
    WRITES,
    alias,
    importable,
    imported,
    is_private,
)
from gatekeeper.sandbox.inside.outputs import Entered, instead
from gatekeeper.sandbox.inside.peer import Peer
from gatekeeper.sandbox.inside.references import original, reference
from gatekeeper.sandbox.inside.shown import ClassOf, class_description
from gatekeeper.sandbox.inside.standins import Value
from gatekeeper.sandbox.inside.surroundings import Observer
from gatekeeper.sandbox.inside.tasks import Driver, Tasks, as_coroutine
from gatekeeper.sandbox.inside.wire import Parts
from gatekeeper.sandbox.inside.wrappers import Wrappers

__all__ = ["JudgePeer"]


class JudgePeer(Peer):
    """The tests' end of the connection.

    Parameters
    ----------
    connection
        The stream to the candidate's process.
    guard
        Decides what the candidate may do with objects of the tests.
    observer
        Notices what the tests change around the candidate.

    Attributes
    ----------
    evidence
        Whether the candidate has returned anything that a test could judge: a value, an exception,
        a function. Answers of an object about itself (`OPINIONS`) do not count.
    answered
        How often the candidate was asked anything but for its functions, classes and objects,
        whatever it answered.
    looks
        What the candidate's objects have shown.
    given_back
        What stands for objects that the tests made where they get them back, by their numbers.
    named
        The objects of Python's that its objects stand for (`identity.real`), by their numbers.
    handed
        The qualified names of the functions of the tests that the candidate was handed, alone or
        with their class.
    asserting
        Finds the functions of the tests that assert something.
    handed_over
        What it was handed that asserts something.
    wrappers
        What the candidate made of functions of the tests that assert something.
    entered
        Context managers of the candidate's that the tests have entered.
    failed
        An assertion of the tests that failed while the candidate was calling back; not of a test
        that the candidate decorates, which may be retried.
    """

    ROOT = 1  # the number of the candidate's module: what it exports first
    _exceptions = functools.cached_property(exceptions.maker)  # few tests meet one

    def __init__(
        self, connection: socket.socket, *, guard: Guard, observer: Observer | None = None
    ) -> None:
        super().__init__(connection)
        self.guard = guard
        self._observer = observer or Observer("")
        self.stranger = object()  # an object that no candidate's object can know
        self.unknown_name = f"gatekeeper_{os.urandom(8).hex()}"  # an attribute that nothing has
        self.expected = guard.expected
        self.evidence = False
        self.answered = 0
        self.handed: set[str] = set()
        self.failed: BaseException | None = None
        self._driver = Driver(self.ask)
        tasks = Tasks(self._note).operations
        parameters = functools.partial(facts.parameters, annotation=self._annotation)
        self._more: dict[str, Any] = {**tasks, "parameters": parameters}  # than `OPERATIONS`
        self._methods: dict[types.MethodType, types.MethodType] = {}
        self.asserting = Asserting(guard.programs)
        self.handed_over = HandedOver(self.asserting, guard.module)
        self.wrappers = Wrappers(self.asserting)
        self.decisions = Decisions(guard.programs)
        self.entered = Entered("\n".join(guard.programs))
        self.looks = Looks(self.decisions.doubt)
        self.named, self.given_back = dict[int, Any](), dict[int, Any]()

    def ask(self, operation: str, /, *arguments: Any, **keywords: Any) -> Any:
        self.answered += operation != "get"
        self.decisions.asked(operation, arguments)
        if operation == "throw":
            self._thrown(*arguments[1:])
        self.looks.asked(operation, arguments)
        if operation == "call":
            found = self._call(*arguments, **keywords)
        else:
            found = super().ask(operation, *arguments, **keywords)
            if operation == "descriptor_get":
                self.wrappers.bound(arguments[0], found)
            elif operation == "get":
                self.wrappers.got(arguments[0], found)
        # Of many calls at once only the last value may be no scalar (`facts.py`).
        items = [*within.parts(found[-1:] if operation == "calls" else found)]
        found = self.decisions.found(operation, [*arguments, *keywords.values()], found, items)
        self.looks.answered(operation, arguments, found)
        self.handed_over.returned(items)
        # A constant may be the answer.
        self.answered += not (is_stand_in(found) and callable(found))
        if not self.evidence and operation not in OPINIONS:
            kind = type(found)
            stand_in = isinstance(kind, RemoteClass) and not issubclass(kind, Value)
            of_python = stand_in and kind_of(kind).inner is None and operation != "get"
            self.evidence = not stand_in or of_python
        return found

    def _call(self, target: Any, /, *arguments: Any, **keywords: Any) -> Any:
        """The result of a call, which may be one of a wrapper, or make one."""
        after = self.wrappers.called(target, arguments, keywords)
        try:
            found = super().ask("call", target, *arguments, **keywords)
        except Exception:
            after()
            raise
        after(found)
        if self.handed_over:
            self.wrappers.made(target, [*arguments, *keywords.values()], found)
        return found

    def finish(self, number: int, operation: str, /, *arguments: Any, **keywords: Any) -> Any:
        try:
            found = super().finish(number, operation, *arguments, **keywords)
            return found if operation in KEEPS else given_back(found)
        except Exception as error:
            if not is_failure(error):  # as a stream of the tests raises it for what was printed
                vars(error)[RAISED] = True  # also that of an answer that cannot be read
            raise

    def received(self, operation: str, error: BaseException) -> BaseException:
        self.evidence = True
        self.answered += 1
        if (handled := sys.exc_info()[1]) is not None:  # of which it may take the place
            self._note(handled)
        raised = super().received(operation, error)
        vars(raised)[RAISED] = True
        return raised

    def matters(self, error: BaseException) -> bool:
        """Whether an error that ended a thread or task of the tests counts as a failure."""
        return any(is_failure(part) or RAISED in vars(part) for part in parts(error))

    def refer(self, item: Any) -> Parts:
        if type(item) is ClassOf:
            if not self.owns(item.kind):
                self.guard.shown.add(item.kind)
            return reference(self.export(item.kind)), (
                class_description(item.kind, self.guard.module),
            )
        if type(item) is types.MethodType:  # a new object whenever it is looked up
            item = self._methods.setdefault(item, item)
        if not is_stand_in(item) and (found := imported(item) or packages.handed(item)):
            return reference(0), (found,)
        if not is_stand_in(item) and (made := alias(item)) is not None:
            return reference(0), (made,)
        return super().refer(item)

    def got(self, contents: Any) -> None:
        self.decisions.give(within.parts(contents))

    def meant(self, number: int, description: Any) -> Any:
        found = super().meant(number, description)
        self.guard.shown.use(found)
        return given_back(found)

    def _number_of(self, item: Any) -> int | None:
        if issubclass(type(item), BaseException):
            item = original(item)
        if is_stand_in(item) and not issubclass(type(item), Value):
            known = inner(item)
            return known.number if known.peer is self else None
        return None

    def _instance(self, item: Any) -> Parts | None:
        # For every stand-in, not only one of a plain value, because `refer` is slower.
        if is_stand_in(item) and (known := inner(item)).peer is self:
            return reference(-known.number), (None,)
        names = facts.member(item)
        return None if names is None else (reference(0), (names,))

    def _describe(self, item: Any) -> Any:
        # A method of an object that it has it may fetch to look at.
        fetched = type(item) is types.MethodType and self.owns(item.__self__)
        first = self.guard.shown.hand_over(item) or not self.owns(item)
        if first and not fetched:
            self.handed_over.add(item)
        if issubclass(type(item), BaseException):
            *shown, _, text = self._error_parts(item)
            return type(item).__name__, *shown, self.export(item), text
        if isinstance(item, type) and issubclass(item, BaseException):
            return type(item).__name__, self.exception_chain(item)
        if issubclass(type(item), types.FunctionType | types.MethodType):  # not a mock of one
            self.handed.add(getattr(item, "__qualname__", ""))
            return type(item).__name__, facts.function_facts(item, self._annotation)
        if isinstance(item, type) and any("Test" in base.__name__ for base in item.__mro__):
            inside = (part for base in item.__mro__ for part in vars(base).values())
            self.handed |= {p.__qualname__ for p in inside if isinstance(p, types.FunctionType)}
        kind: Any = type(item)
        if issubclass(kind, type):
            return class_description(item, self.guard.module)
        if kind.__module__ == self.guard.module:
            return kind.__name__, ClassOf(kind)
        return kind.__name__, (*facts.handle_facts(kind), claimed(item))

    def _annotation(self, kind: Any) -> Any:
        """What the candidate sees of an annotation: classes only that it was given, or knows."""
        if (
            not isinstance(kind, type)
            or is_stand_in(kind)
            or (self.owns(kind) and kind not in self.guard.shown)
            or facts.standard(kind)
        ):
            return kind
        return kind.__name__

    def _shared(self, module: str, name: str) -> Any:
        found = NAMED.get((module, name)) or importable(module, name)
        if (module, name) not in NAMED and facts.member(found) is None:
            raise ValueError(f"{module}.{name}")
        return found

    def _error_parts(self, error: BaseException) -> Any:
        """The parts of an exception of ours; of a failed assertion without its message."""
        if any(failures(error)):
            return self.exception_chain(type(error)), (), {}, 0, None
        return super()._error_parts(error)

    def _note(self, error: BaseException, ran: Any = None) -> None:
        """Record a failed assertion, which counts even if it is caught.

        But not that of a test that the candidate itself has run: it may run that again.
        """
        for part in failures(error):
            if ran is None or vars(part).get(EXCUSED) != name_of(ran):
                self.failed = self.failed or part

    def _thrown(self, *arguments: Any) -> None:
        """Record a failed assertion that was raised, and that the candidate gets."""
        for error in arguments:
            if is_failure(error) and error.__traceback__ is not None:
                self._note(error)

    def _perform(self, operation: str, target: Any, /, *arguments: Any, **keywords: Any) -> Any:
        try:
            return self._allowed(operation, target, *arguments, **keywords)
        except BaseException as error:
            self._note(error, target)
            raise

    def _allowed(self, operation: str, target: Any, /, *arguments: Any, **keywords: Any) -> Any:
        """The value of an operation, if the candidate may request it."""
        perform = self._more.get(operation) or OPERATIONS.get(operation)
        if perform is None:
            raise RefusedError(f"{operation!r:.80}: no such operation")
        if not self.owns(target):
            raise RefusedError("not an object of the tests")
        self.guard.shown.use(target, -1)  # which it puts nowhere
        self.guard.check(operation, target, arguments)
        given = (*arguments, *keywords.values())
        self.guard.check_texts(operation, target, given)
        for kind in self.guard.shown.among(operation, target, given):
            objects = (item for item in self._owned if issubclass(type(item), kind))
            self.guard.check_class(operation, kind, arguments, objects)
        if (text := self.guard.text(operation, target)) is not None:
            return text
        if operation == "get" and arguments[0] == "__dict__":
            return self.guard.attributes(target)
        kept = operation in WRITES and is_private(arguments[0])
        if kept and not self.guard.attaches(operation, target, *arguments):
            return None
        items = [*within.parts(given)]
        self.handed_over.returned(items)
        self.decisions.give(items)
        if operation != "call":
            return perform(target, *arguments, **keywords)
        try:
            with self.wrappers.running(target, arguments, keywords) as ended:
                made = perform(target, *arguments, **keywords)
                ended(made)
            if isinstance(made, BaseException):  # as `task.exception()` gives it
                self._thrown(made)
        except Exception as error:
            if RAISED not in vars(error):  # an error of its own ends it, too
                self.handed_over.returned([target])
            raise
        self.handed_over.ended(target, made)
        return made

    def _new_exception(self, name: str, bases: Any, asked: dict[str, Any], more: Any) -> Any:
        return self._exceptions(name, bases, asked, more)

    _added = staticmethod(exceptions.added)

    def stands_for(self, known: Any, error: BaseException) -> None:
        """Let an exception of the tests stand for one of the candidate's, which is known."""
        self._theirs[inner(known).number] = error

    def _own_error(self, number: int) -> BaseException | None:
        own = super()._own_error(number)
        # A failed assertion stays one of the tests.
        return None if own is None or any(failures(own)) else own

    def _original(self, number: int, kind: Any) -> Any:
        return exceptions.unraised(kind, Inner(self, number))

    def _error(
        self, classes: Any, arguments: Any, state: Any, number: Any, text: Any
    ) -> BaseException:
        state = {n: v for n, v in state.items() if not self.decisions.hides(n, v)}
        self.decisions.give(within.parts([arguments, *state.values()]))
        error = super()._error(classes, arguments, state, number, text)
        vars(error)[RAISED] = True  # also of one that was returned, which the tests may raise
        return error

    def _surroundings(self) -> Any:
        changes = self._observer.changes()
        self.guard.around.update(
            (id(item), item) for item in (changes or {}).get("replaced", {}).values()
        )
        return {**(changes or {}), "loop": True} if self._driver.start() else changes

    def _surrounded(self, around: Any) -> contextlib.AbstractContextManager[list[Any]]:
        own: Any = {}
        try:
            if around and around[-1][0] == "outputs":
                *around, (_, own) = around
            self._repeat(around or ())
        except BaseException as error:
            self._note(error)
            raise
        return instead(own) if own else super()._surrounded(None)

    def _repeat(self, printed: Iterable[Any]) -> None:
        for kind, record in printed:
            self.evidence = self.evidence or self._observer.is_seen(kind, record)
            self._observer.repeat(kind, record)

    # Stand-ins

    def _stand_in(self, number: int, description: Any) -> Any:
        match description:
            case ("exception", list(chain)):
                return self.exception_class([tuple(c) for c in chain])
            case ("class", str(name), str(qualified), list(bases), list(special), dict(more)):
                return candidate_class(Inner(self, number), name, qualified, bases, special, more)
            case ("shared", str(module), str(name)):
                found = instance(library_class(module, name), Inner(self, number))
                return as_coroutine(found) if name == "coroutine" else found
            case ("error", classes, arguments, state, number_, text):
                return self._error(classes, arguments, state, number_, text)
            case ("object", RemoteClass() as kind):
                return instance(kind, Inner(self, number))
            case ("value", RemoteClass() as kind, value) if type(value) is kind_of(kind).plain:
                make: Any = kind_of(kind).plain
                made = make.__new__(kind, value)
                object.__getattribute__(made, "__dict__")["gatekeeper"] = Inner(self, number)
                return made
        raise ValueError(f"no description of an object: {description!r:.80}")
