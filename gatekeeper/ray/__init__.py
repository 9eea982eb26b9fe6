"""Generation and verification on a Ray cluster. Ray itself is imported when a pool starts."""

from gatekeeper.ray.generator import RayGenerator
from gatekeeper.ray.rows import VerifyRows
from gatekeeper.ray.verifier import RayVerifier
from gatekeeper.ray.worker import Make

__all__ = ["Make", "RayGenerator", "RayVerifier", "VerifyRows"]
