"""Classes of packages that both sides have, such as matplotlib's `Axes`.

Tests ask whether an object is one: `isinstance(ax, plt.Axes)`. So what stands for the other side's
object shows the package's own class, as with classes of Python. All else is asked of the other
side. Not of data: what a library takes for an array or a frame it compares itself.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

from gatekeeper.sandbox.inside.operations import importable

__all__ = ["brought", "extension", "found", "handed", "is_of_package", "loaded", "named"]

_PACKAGES = ("/site-packages/", "/dist-packages/")
_TESTING = {"_pytest", "hypothesis", "pluggy", "pytest", "unittest"}
_DATA = {  # classes of data, also of what extends them
    "numpy": ("ndarray", "generic", "dtype"),
    "pandas": ("DataFrame", "Series", "Index"),
    "pandas.api.extensions": ("ExtensionArray", "ExtensionDtype"),
}


def is_of_package(module: object) -> bool:
    """Whether this process has a module of that name that is no part of Python."""
    file = getattr(sys.modules.get(module), "__file__", None) if type(module) is str else None
    return type(file) is str and any(folder in file for folder in _PACKAGES)


def loaded(module: object, name: object) -> type | None:
    """The class of that name of a package, if this process has it.

    Not one of a test framework, by which a test may end without a failure.
    """
    known: Any = sys.modules.get(str(module)) if is_of_package(module) else None
    kind = None if known is None else vars(known).get(name)
    if not isinstance(kind, type):
        return None
    ends = any(base.__module__.partition(".")[0] in _TESTING for base in kind.__mro__)
    return None if ends else kind


def found(kind: type, *, sent: tuple[type, ...]) -> type | None:
    """A class that `loaded` has found, if its objects stay where they are; else None.

    `sent` are Python's own classes of data. What extends one has methods that compare data.
    """
    return None if issubclass(kind, (BaseException, *sent, *_data())) else kind


def _data() -> list[type]:
    modules = [(sys.modules.get(module), names) for module, names in _DATA.items()]
    return [vars(module)[name] for module, names in modules if module for name in names]


def named(kind: type) -> tuple[str, str] | None:
    """Module and name by which the other side may find a class of a package; else None."""
    module, name = kind.__module__, kind.__qualname__
    return (module, name) if loaded(module, name) is kind else None


def handed(item: Any) -> tuple[str, str] | None:
    """Module and name of what a package has, such as `np.float32` or `np.mean`; else None.

    Not of what asserts something: it must fail where the tests are.
    """
    module, name = getattr(item, "__module__", None), getattr(item, "__name__", None)
    if type(module) is not str or type(name) is not str or not callable(item):
        return None
    root = module.partition(".")[0]
    if root in _TESTING or "testing" in module or not is_of_package(module):
        return None
    return (module, name) if vars(sys.modules[module]).get(name) is item else None


def brought(module: str, name: str) -> Any:
    """What the tests have named, in the other process: of Python's own, or of a package (`handed`).

    Raises ValueError.
    """
    if module.partition(".")[0] in sys.stdlib_module_names:
        return importable(module, name)
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        raise ValueError(f"{module}.{name}") from None


def extension(made: Any, name: str, bases: Sequence[type]) -> type:
    """A class that extends those of packages, to be shown in the place of `made`.

    It has no objects: a call of it is one of `made`.
    """
    meta = type(bases[0])
    for base in bases:
        meta = type(base) if issubclass(type(base), meta) else meta
    special: dict[str, Callable[..., Any]] = {
        "__call__": lambda _, *arguments, **keywords: made(*arguments, **keywords),
        "__getattr__": lambda _, attribute: getattr(made, attribute),
        "__instancecheck__": lambda _, item: isinstance(item, made),
        "__subclasscheck__": lambda kind, other: other is kind or issubclass(other, made),
    }
    with contextlib.suppress(Exception):  # of the package, which may not be extended so
        namespace = {"__module__": "candidate", "__slots__": ()}
        return type.__new__(type(meta.__name__, (meta,), special), name, tuple(bases), namespace)
    return bases[0]
