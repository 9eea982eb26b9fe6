"""Makes docs/images/live.png and live-dark.png: the live page of a simulated run, in Chromium.

    python docs/images/live.py

Needs playwright, pillow and Debian's chromium.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright

from gatekeeper import Budget, VerificationGate
from gatekeeper.testing import ScriptedVerifier, make_generation

OUTPUTS = 3000
SIZE = {"width": 960, "height": 1010}
SCHEMES: dict[Literal["light", "dark"], str] = {"light": "live.png", "dark": "live-dark.png"}


def run(log: Path) -> None:
    """A gate over outputs of which the uncertain ones are wrong more often."""
    rng = np.random.default_rng(2)
    outputs = [make_generation(f"q{i}", seed=i) for i in range(OUTPUTS)]
    uncertainty = np.array([-np.mean(output.logprob) for output in outputs])
    odds = np.exp(8.0 * (uncertainty - np.quantile(uncertainty, 0.85)))
    wrong = rng.random(OUTPUTS) < odds / (1.0 + odds)
    labels = {output.id: int(w) for output, w in zip(outputs, wrong, strict=True)}
    with VerificationGate(
        "threshold", budget=Budget(fraction=0.2), verifier=ScriptedVerifier(labels), log=log
    ) as gate:
        for output in outputs:
            gate.maybe_verify(output)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "run.db"
        run(log)
        command = [sys.executable, "-m", "gatekeeper", "watch", str(log), "--port", "0"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            url = process.stderr.readline().split()[-1]
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(
                    executable_path=shutil.which("chromium"), args=["--no-sandbox"]
                )
                for scheme, name in SCHEMES.items():
                    page = browser.new_page(viewport=SIZE, color_scheme=scheme)
                    page.goto(url)
                    page.get_by_text(f"{OUTPUTS:,} outputs, ").wait_for()
                    save(page.screenshot(), Path(__file__).with_name(name))
                browser.close()
            process.terminate()


def save(shot: bytes, path: Path) -> None:
    few = Image.open(io.BytesIO(shot)).convert("P", palette=Image.Palette.ADAPTIVE, colors=64)
    few.save(path, optimize=True)


if __name__ == "__main__":
    main()
