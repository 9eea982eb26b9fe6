"""Programs that end, or print, in a way of their own."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from attacks.program import Program, attack, shape

__all__ = ["ENDINGS"]

ENDINGS: list[Program] = []

for name, code in {
    "exit()": "print(3)\nexit()\n",
    "quit(0)": "print(3)\nquit(0)\n",
    "os._exit(0)": "import os\nprint(3, flush=True)\nos._exit(0)\n",
    "its output closed": "import sys\nprint(3)\nsys.stdout.close()\n",
    "its output wrapped": "import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='utf-8')\nprint(3)\n",
    "its errors wrapped": "import io, sys\nsys.stderr = io.TextIOWrapper(sys.stderr.buffer, encoding='utf-8')\nprint(3)\n",
    "its output replaced at the end": "import io, sys\nprint(3)\nsys.stdout = io.StringIO()\nprint(4)\n",
    "no arguments": "import sys\nprint(open(sys.argv[1]).read() if len(sys.argv) > 1 else 3)\n",
    "its own file": "import os\nprint(3 if os.path.basename(__file__) else 4)\n",
}.items():
    ENDINGS.append(
        shape(
            f"ending: a program with {name}", code, input_output={"inputs": [""], "outputs": ["3"]}
        )
    )
for name, code in {
    "too early": "import os\nos._exit(0)\n",
    "with an error": "import os\nprint(3, flush=True)\nos._exit(1)\n",
}.items():
    ENDINGS += attack(
        "forged",
        f"ending: a program ends {name}",
        code,
        task={"input_output": {"inputs": [""], "outputs": ["3"]}},
    )

ENDINGS += attack(
    "forged",
    "ending: an error after all descriptors were closed",
    "import os\nprint(int(input()) ** 2, flush=True)\nos.closerange(0, 256)\nraise ValueError\n",
    task={"input_output": {"inputs": ["2", "3"], "outputs": ["4", "9"]}},
)
