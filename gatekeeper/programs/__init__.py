"""Parts of programs on a terminal: of the commands of `gatekeeper` and of the examples."""
