"""What must be so before a question is worth asking."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

from memconform.client.client import ContractClient
from memconform.client.failures import CallError
from memconform.contract.core import Brain, SearchRequest, Version
from memconform.contract.wire import CONTRACT_VERSION, Mode
from memconform.daemons.runner import SdkRunner
from memconform.errors import DaemonError, UsageError
from memconform.ingest.seeding import SeededBrain, seeded_brain, wait_until_indexed
from memconform.runs.plan import Plan
from memconform.scenarios.scenario import RetrievalSettings, require_requested_mode

_DELETE_SECONDS = 10.0


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


@asynccontextmanager
async def filled_brain(
    plan: Plan, runner: SdkRunner, client: ContractClient, brain: str
) -> AsyncIterator[tuple[Brain, SeededBrain | None]]:
    """Seed the brain, or make sure that there is one to ask; its counts, and what went in.

    Raises:
        UsageError: where there is no brain, or nothing in it.
        DaemonError: where its state is unknown, or seeding fails.
    """
    if plan.corpus is None:
        yield await _existing(runner, client, brain), None
        return
    async with seeded_brain(client, runner, brain, plan.corpus, [plan.settings.mode]) as seeded:
        try:
            yield seeded.counts, seeded
        finally:
            if plan.settings.brain is None and not runner.managed:
                # The state of a daemon of ours goes with it; elsewhere a brain would stay.
                with suppress(CallError, TimeoutError):
                    async with asyncio.timeout(_DELETE_SECONDS):
                        await client.delete_brain(brain)


async def _existing(runner: SdkRunner, client: ContractClient, brain: str) -> Brain:
    try:
        counts = await wait_until_indexed(client, brain)
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
    return counts


async def prove_claims(
    client: ContractClient, plan: Plan, runner: SdkRunner, brain: str, query: str
) -> None:
    """Raises DaemonError where a mode that the SDK claims, or the run wants, is not served."""
    claimed = runner.modes
    if claimed is None:
        return
    for mode in dict.fromkeys((*claimed, plan.settings.mode)):
        settings = RetrievalSettings(brain=brain, mode=mode, top_k=1)
        try:
            answer, _ = await client.search(
                settings.brain, SearchRequest(query=query, top_k=1, mode=mode)
            )
            require_requested_mode(settings, answer.trace)
            if mode is Mode.AUTO and Mode.HYBRID in claimed:
                # The contract: auto is hybrid wherever there is an embedder.
                require_requested_mode(replace(settings, mode=Mode.HYBRID), answer.trace)
        except CallError as error:
            raise DaemonError(
                f"{runner.name} is to serve mode {mode.value}: {error.message}",
                code="claim_refuted",
                hint="mend [capabilities] modes or the daemon's settings, or use --allow-fallback",
                excerpt=error.body,
            ) from error
