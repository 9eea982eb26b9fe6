"""`python -m gatekeeper.adapters.inspect_ai`."""

import sys

from gatekeeper.adapters.inspect_ai.report import main

if __name__ == "__main__":
    sys.exit(main())
