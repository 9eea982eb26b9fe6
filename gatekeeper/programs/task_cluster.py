"""The verifier and the generator of a run on a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

from gatekeeper.errors import BadInputError
from gatekeeper.gate.runner import Sampler
from gatekeeper.io.tasks import Task
from gatekeeper.programs.run_options import RunOptions
from gatekeeper.programs.task_generator import make_sampler
from gatekeeper.programs.task_verifier import verifier_of, verifiers_by_kind
from gatekeeper.ray import RayGenerator, RayVerifier
from gatekeeper.ray.cluster import connected

__all__ = ["on_cluster"]

ON_GPUS = "vllm"  # the generator that takes a GPU for each actor


@contextmanager
def on_cluster(tasks: Sequence[Task], options: RunOptions) -> Iterator[tuple[RayVerifier, Sampler]]:
    """A pool of verifiers on all nodes, and the generator: on actors too, or in this process.

    Afterwards Ray is left: it prints what happens on the cluster for as long as a process is
    connected.

    Raises
    ------
    BadInputError
        As of `verifiers_by_kind`, and for more actors than the cluster has room for.
    GatekeeperError
        As of `RayVerifier` and `RayGenerator`.
    """
    kinds = sorted({task["kind"] for task in tasks})
    names = verifiers_by_kind(kinds, sandbox=options.sandbox, maths=options.maths_checker)
    with ExitStack() as stack:
        ray = connected(options.address)
        stack.callback(ray.shutdown)
        has = ray.cluster_resources()
        gpus = int(has.get("GPU", 0)) if options.generator == ON_GPUS else 0
        models = gpus if options.generators is None else options.generators
        processors = int(has.get("CPU", 0)) - models
        if processors < 1:
            raise BadInputError(
                f"--generators {models}: each takes a processor, and the cluster has "
                f"{has.get('CPU', 0):g}, of which the verifiers need at least one; give fewer"
            )
        sampler: Sampler = (
            make_sampler(options)()
            if not models
            else stack.enter_context(
                RayGenerator(make_sampler(options), actors=models, gpus=1.0 if gpus else 0.0)
            )
        )
        yield (
            stack.enter_context(RayVerifier(partial(verifier_of, names), actors=processors)),
            sampler,
        )
