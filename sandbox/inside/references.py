"""Objects that stay where they are: the numbers by which two processes refer to them.

Exceptions are such objects, too, but are made again on the other side: they have to be raised and
caught there.
"""

from __future__ import annotations

import _thread
import contextlib
import sys
import types
import weakref
from collections.abc import Sequence
from typing import Any

from gatekeeper.sandbox.inside import library_errors
from gatekeeper.sandbox.inside.codec import encode
from gatekeeper.sandbox.inside.operations import NAMED
from gatekeeper.sandbox.inside.places import Places
from gatekeeper.sandbox.inside.wire import Parts

__all__ = ["EXCEPTION", "LIMIT", "References", "original", "reference"]

LIMIT = 32 << 20  # bytes of one message
_UNBOUNDED = {"max_hashed": sys.maxsize, "max_items": sys.maxsize}  # `LIMIT` is enough
_NAMES = {id(kind): names for names, kind in NAMED.items()}  # ids stay valid


def reference(number: int) -> bytes:
    """The head of a reference; its description follows as a part (`codec.py`)."""
    return b"h" + number.to_bytes(8, "little", signed=True)


class References:
    """The references of one side: to objects of the other, and of the other to its own.

    Subclasses make the objects that stand here for those of the other side.
    """

    def __init__(self) -> None:
        self._lock = _thread.RLock()
        self._owned: list[object] = []  # objects that the other side refers to, by index + 1
        self._ids: dict[int, int] = {}  # id() of an owned object -> its number
        self._theirs: dict[int, Any] = {}  # number -> the object that stands here for theirs
        # Likewise, of exceptions: only while something else has them, with all of their frames.
        self._raised: Any = weakref.WeakValueDictionary()

    # Methods that differ between the two sides

    def _stand_in(self, number: int, description: Any) -> Any:
        """The object that stands here for the other side's object of that number."""
        raise NotImplementedError

    def _number_of(self, item: Any) -> int | None:
        """The number of their object that `item` stands for; None for other objects."""
        raise NotImplementedError

    def _describe(self, item: Any) -> Any:
        """The description that the other side gets of an object that stays here."""
        raise NotImplementedError

    def _instance(self, item: Any) -> Parts | None:
        """How an instance of a subclass of a plain type is written; None: by value."""
        raise NotImplementedError

    def _shared(self, module: str, name: str) -> Any:
        """An object that both sides have. Raises ValueError."""
        raise NotImplementedError

    def _own_error(self, number: int) -> BaseException | None:
        """Our exception of that number, if it may come back as it is."""
        own = self._owned[number - 1]
        return own if isinstance(own, BaseException) else None

    def _original(self, number: int, kind: Any) -> Any:
        """What stands for their exception of that number, and class, but cannot be raised."""
        raise NotImplementedError

    # Objects

    def export(self, item: object) -> int:
        """The number, from 1, by which the other side may ask about an object of ours."""
        number = self._ids.get(id(item))
        if number is None:
            with self._lock:
                self._owned.append(item)
                number = self._ids[id(item)] = len(self._owned)
        return number

    @property
    def has_objects(self) -> bool:
        """Whether the other side was given any object of ours."""
        return bool(self._owned)

    def known(self, number: int) -> Any:
        """What stands here for the other side's object of that number; None: nothing yet."""
        return self._theirs.get(number)

    def owns(self, item: object) -> bool:
        """Whether the other side was given that object of ours."""
        return id(item) in self._ids

    def meant(self, number: int, description: Any) -> Any:
        """The object that a reference means here. Raises ValueError if there is none."""
        if number < 0:  # a reference to one of our own objects
            return self._owned[-number - 1]
        if number == 0:
            module, name = description
            return self._shared(str(module), str(name))
        known = self._theirs.get(number)
        if known is None:
            known = self._stand_in(number, description)
            self._theirs[number] = known
        return known

    def refer(self, item: Any) -> Parts:
        """How an object that stays here is written."""
        number = self._number_of(item)
        if number is not None:
            return reference(-number), (None,)
        if (names := _NAMES.get(id(item))) is not None:
            return reference(0), (names,)
        description = self._describe(item)
        return reference(self.export(item)), (description,)

    def _encode(
        self,
        item: object,
        limit: int = LIMIT,
        *,
        sent: bool = False,
        places: Places | None = None,
    ) -> bytes:
        """An item as bytes; `sent`: which the other side will receive. The rest as of `encode`."""
        places = Places() if places is None else places
        writers = {"other": self.refer, "instance": self._instance}
        return encode(item, limit, **writers, **_UNBOUNDED, places=places)  # type: ignore[arg-type]

    # Exceptions

    def exception_chain(self, kind: type[BaseException]) -> list[tuple[Any, ...]]:
        """An exception's class and those below it, each after what extends it.

        Of each: module, name, number (negative: the other side's), the places of its bases, and
        what it adds to them.
        """
        theirs = {id(made): -n for n, made in [*self._theirs.items()] if isinstance(made, type)}
        chain = [c for c in type.mro(kind) if issubclass(c, BaseException)]
        places = {id(c): n for n, c in enumerate(chain)}
        return [
            (
                str(c.__module__),
                str(c.__qualname__),
                theirs.get(id(c)) or self.export(c),
                tuple(places[id(base)] for base in c.__bases__ if id(base) in places),
                self._added(c),
            )
            for c in chain
        ]

    def exception_class(
        self, classes: Sequence[Sequence[Any]], at: int = 0, *, packages: bool = True
    ) -> Any:
        """A class of ours to catch their exception by: the same where both sides have it.

        `classes` are as of `exception_chain`, `at` the place of the one to make, which extends what
        both have of `packages`.
        """
        module, name, number, places, more = classes[at]
        if number < 0:
            own = self._owned[-number - 1]
            if isinstance(own, type) and issubclass(own, BaseException):
                return own
        shared = getattr(sys.modules.get(module), name, None)
        # unittest's own exceptions skip a test, which a candidate must not do.
        standard = module.partition(".")[0] in sys.stdlib_module_names - {"unittest"}
        if standard and isinstance(shared, type) and issubclass(shared, BaseException):
            return shared
        made = self._theirs.get(number)
        if not (packages and isinstance(made, type) and issubclass(made, BaseException)):
            above = [place for place in places if place > at]
            bases = [self.exception_class(classes, place, packages=packages) for place in above]
            asked: dict[str, Any] = {}
            library = library_errors.shared(module, name) if packages else None
            if library is not None:
                bases, asked = [library], library_errors.public(library, _attribute_of)
            plain, kinds = str(name).rpartition(".")[2], tuple(dict.fromkeys(bases))
            made = self._new_exception(plain, kinds or (Exception,), asked, more)
            self._theirs[number] = made
        return made

    def _new_exception(self, name: str, bases: Any, asked: dict[str, Any], more: Any) -> Any:
        """A class of ours for exceptions of theirs, with what asks them, which adds `more`."""
        return type(name, bases, {**EXCEPTION, **asked, **more})

    def _added(self, kind: type[BaseException]) -> dict[str, Any]:
        """What the other side sees of the namespace of a class of ours."""
        return {}

    def _error_parts(self, error: BaseException) -> Any:
        """(classes, arguments, attributes, number, text) of an exception.

        Number and text only if the other side does not know its class; else 0 and None. Of one that
        stands for the other side's, the number is negative, and there is nothing else.
        """
        kind = type(error)
        if (theirs := self._number_of(error)) is not None:
            return self.exception_chain(kind), (), {}, -theirs, None
        state = {n: v for n, v in vars(error).items() if n[:1] != "_" or n == "__notes__"}
        for name in _fields(kind):
            if type(value := getattr(error, name, None)) in (str, int):
                state[name] = value
        if error.__cause__ is not None:
            state["__cause__"] = error.__cause__
        elif error.__suppress_context__:  # `raise … from None`
            state["__suppress_context__"] = True
        number, text = 0, None
        if kind.__module__.partition(".")[0] not in sys.stdlib_module_names:
            number = self.export(error)
            writes = next(k for k in kind.__mro__ if "__str__" in vars(k))
            if writes.__module__ != "builtins":
                with contextlib.suppress(Exception):
                    text = str(error)
        described = (self.exception_chain(kind), error.args, state, number, text)
        try:
            self._encode(described)
        except BaseException:  # hostile arguments affect only their own message
            return (self.exception_chain(kind), (), {}, 0, None)
        return described

    def _error(
        self, classes: Any, arguments: Any, state: Any, number: Any, text: Any
    ) -> BaseException:
        if type(number) is int and number < 0 and (own := self._own_error(-number)) is not None:
            return own
        numbered = type(number) is int and number > 0
        error = (self._theirs.get(number) or self._raised.get(number)) if numbered else None
        if not isinstance(error, BaseException):
            error = self._new_error([tuple(c) for c in classes], arguments)
        error.args = tuple(arguments)
        for name, value in state.items():
            known = name in ("__notes__", "__cause__", "__suppress_context__")
            if type(name) is str and (known or not name.startswith("_")):
                with contextlib.suppress(AttributeError, TypeError):
                    BaseException.__setattr__(error, name, value)
        if numbered:
            vars(error)[_ORIGINAL] = (
                original(error) or self._original(number, type(error)),
                text if type(text) is str else None,
            )
            with contextlib.suppress(TypeError):  # Python's own classes have no weak references
                self._raised[number] = error
        return error

    def _new_error(self, classes: Sequence[Sequence[Any]], arguments: Any) -> BaseException:
        kind = self.exception_class(classes)
        error = library_errors.made(kind, arguments)
        if error is None:  # as of a package that makes it of something else
            kind = self.exception_class(classes, packages=False)
            error = kind.__new__(kind, *arguments)
        # Python's own classes need it: CPython reads fields of a StopIteration that only `__init__`
        # sets. The meaning of arguments of other classes is unknown.
        init = next(vars(k)["__init__"] for k in kind.__mro__ if "__init__" in vars(k))
        if type(init) is types.WrapperDescriptorType:
            with contextlib.suppress(Exception):
                init(error, *arguments)
        return error


def _fields(kind: type) -> Sequence[str]:
    """The attributes of Python's exceptions that only their `__init__` sets, such as `errno`."""
    above = [vars(base) for base in kind.__mro__ if base.__module__ == "builtins"]
    items = {name: item for names in reversed(above) for name, item in names.items()}
    fields = (name for name, item in items.items() if type(item) is types.MemberDescriptorType)
    return [name for name in fields if name[:1] != "_"]


_ORIGINAL = "__gatekeeper__"  # an attribute of exceptions: what stands for the original, its text


def original(error: object) -> Any:
    """What stands for the exception of the other side that this one was made for, if known."""
    return getattr(error, "__dict__", {}).get(_ORIGINAL, (None,))[0]


def _text_of(error: BaseException) -> str:
    """`str` of an exception of the other side: its own text, if its class defines one."""
    text: str | None = vars(error).get(_ORIGINAL, (None, None))[1]
    kinds = (k for k in type(error).__mro__ if vars(k).get("__str__", _text_of) is not _text_of)
    own: Any = next(kinds)
    return str(own.__str__(error)) if text is None else text


def _attribute_of(error: BaseException, name: str) -> Any:
    """An attribute that an exception of the other side gets from its class."""
    if (known := original(error)) is None or name.startswith("__"):
        raise AttributeError(name)
    return getattr(known, name)


EXCEPTION = {"__module__": "candidate", "__str__": _text_of, "__getattr__": _attribute_of}
"""The namespace of a class for exceptions of the other side."""
