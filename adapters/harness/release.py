"""The error of a plug-in if its harness is missing, or has an unsupported release."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from gatekeeper.errors import BadInputError, GatekeeperError, MissingDependencyError

__all__ = ["unusable"]


def unusable(
    distribution: str, tested: str, *, extra: str, error: ImportError | AttributeError
) -> GatekeeperError | ImportError | AttributeError:
    """The error to raise if a part of a harness is missing.

    Parameters
    ----------
    distribution : str
        The harness's name on the package index.
    tested : str
        The release that the plug-in was tested with.
    extra : str
        The extra of gatekeeper that installs it.
    error : ImportError or AttributeError
        What was not there.
    """
    if (error.name or "").startswith("gatekeeper"):
        return error  # of our own
    try:
        installed = version(distribution)
    except PackageNotFoundError:
        installed = ""
    package = distribution.replace("-", "_")
    of_harness = (error.name or package).partition(".")[0] == package
    if not installed or (isinstance(error, ModuleNotFoundError) and not of_harness):
        needed_for = f"the adapter for {distribution}"
        return MissingDependencyError(error.name or package, extra=extra, needed_for=needed_for)
    return BadInputError(
        f"{distribution} {installed} is installed, and this plug-in was made for {tested}: "
        f"{error}. pip install '{distribution}=={tested}'"
    )
