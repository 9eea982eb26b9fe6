"""`python -m gatekeeper`: the command line."""

import sys

from gatekeeper.cli import main

if __name__ == "__main__":
    sys.exit(main())
