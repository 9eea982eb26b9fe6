"""`python -m gatekeeper.adapters.lm_eval`."""

import sys

from gatekeeper.adapters.lm_eval.command import main

if __name__ == "__main__":
    sys.exit(main())
