"""`python -m gatekeeper`: the command line."""

import sys

from gatekeeper.cli import main

sys.exit(main())
