"""What must be so before a question is worth asking."""

from memconform.client.client import ContractClient
from memconform.client.failures import CallError
from memconform.contract.core import Version
from memconform.contract.wire import CONTRACT_VERSION
from memconform.daemons.runner import SdkRunner
from memconform.errors import DaemonError, UsageError
from memconform.runs.plan import Plan
from memconform.runs.results import SeedRecord
from memconform.runs.seeding import corpus_documents, reference_documents, seed, settled


async def read_version(client: ContractClient) -> Version:
    """The daemon's version; raises DaemonError where it has none, or another contract."""
    try:
        version = await client.version()
    except CallError as error:
        raise DaemonError(
            f"the daemon does not say its version: {error.message}",
            code="no_version",
            hint="GET /version answers name, version and contract",
            excerpt=error.body,
        ) from error
    if version.contract != CONTRACT_VERSION:
        raise DaemonError(
            f"the daemon speaks contract {version.contract!r}, not {CONTRACT_VERSION!r}",
            code="contract_version",
            hint="use a harness of that contract's version",
        )
    return version


async def fill_brain(plan: Plan, runner: SdkRunner, client: ContractClient) -> SeedRecord | None:
    """Seed the brain, or make sure that there is one to ask.

    Raises:
        UsageError: where there is no brain, or nothing in it.
        DaemonError: where its state is unknown, or seeding fails.
    """
    brain = plan.settings.brain
    if plan.seeding is not None:
        documents = (
            reference_documents(plan.selected.dataset)
            if plan.seeding == "reference"
            else corpus_documents(plan.seeding)
        )
        return await seed(client, runner, brain, documents, plan.settings.mode)
    try:
        counts = await settled(client, brain)
    except CallError as error:
        if error.code == "http_404":
            raise UsageError(
                f"{runner.name} has no brain {brain!r}",
                code="no_brain",
                hint="seed one with --seed-reference-brain or --corpus DIR, or check --brain",
            ) from error
        raise DaemonError(
            f"the state of brain {brain!r} is unknown: {error.message}",
            code="brain_unknown",
            hint="GET /v1/brains/{id} answers its counts",
            excerpt=error.body,
        ) from error
    if counts.documents == 0:
        raise UsageError(
            f"brain {brain!r} is empty, so that every answer would be wrong",
            code="empty_brain",
            hint="seed it with --seed-reference-brain or --corpus DIR, or check --brain",
        )
    return None
