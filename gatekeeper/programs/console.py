"""The console on which commands print tables."""

from rich.console import Console

__all__ = ["ResultConsole"]


class ResultConsole(Console):
    """A console of rich that lets a program learn that the reader of its output has stopped.

    Rich's own ends the program with exit code 1, which has another meaning for most commands.
    """

    def on_broken_pipe(self) -> None:
        """Raise the `BrokenPipeError` that is being handled."""
        raise
