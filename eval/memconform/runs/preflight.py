"""Checks before the first question: version, brain and claimed modes."""

from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager

from memconform.client.client import ContractClient
from memconform.client.failures import CallError
from memconform.client.recorder import record_exchanges
from memconform.contract.core import Brain, SearchRequest
from memconform.contract.wire import OWN, UNCONFIRMED, Mode
from memconform.daemons.sdk_runner import SdkRunner
from memconform.errors import DaemonError, UsageError
from memconform.ingest.counts import wait_until_indexed
from memconform.ingest.verification import IndexVerifier
from memconform.measuring.daemon_session import DaemonSession
from memconform.measuring.proven_brain import open_brain
from memconform.measuring.requirements import require_requested_mode
from memconform.measuring.scenario import RetrievalSettings
from memconform.runs.plan import Plan


@asynccontextmanager
async def brain_verifier(
    plan: Plan, runner: SdkRunner, session: DaemonSession, brain: str
) -> AsyncIterator[IndexVerifier]:
    """Seed the brain and prove it, or check that it exists; it is verified by what is yielded.

    Raises:
        UsageError: `no_brain` or `empty_brain`, or if the corpus cannot be used.
        DaemonError: `brain_unknown` if its state cannot be read, or if seeding fails.
    """
    if plan.corpus is None:
        counts = await _existing_brain(runner, session.client, brain)
        verifier = IndexVerifier(
            session.client, session.daemon, counts, None, session.version, plan.reverify
        )
        await verifier.begin()
        yield verifier
        return
    stays = plan.settings.brain is not None
    opening = open_brain(session, runner, brain, plan.corpus, stays=stays)
    async with AsyncExitStack() as stack:
        try:
            opened = await stack.enter_async_context(opening)
            proven = await opened.prove(plan.settings.mode, proving=plan.reverify)
        except DaemonError as error:
            cause = error.__cause__
            if isinstance(cause, CallError) and (flag := advise(cause, plan, runner)):
                error.hint = flag
            raise
        yield proven.queries.verifier


def advise(error: CallError, plan: Plan, runner: SdkRunner) -> str:
    """What to type so that what failed in a run is measured; empty if no flag helps."""
    from memconform.runs.remedies import flag_remedy  # noqa: PLC0415 - for failures alone

    return flag_remedy(error.code, error.message, runner, rank_by=plan.settings.rank_by)


async def _existing_brain(runner: SdkRunner, client: ContractClient, brain: str) -> Brain:
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
            f"cannot read the state of brain {brain!r}: {error.message}",
            code="brain_unknown",
            hint="GET /v1/brains/{id} must answer its counts",
            excerpt=error.body,
        ) from error
    if counts.documents == 0:
        raise UsageError(
            f"brain {brain!r} is empty, so every answer would be wrong",
            code="empty_brain",
            hint="seed it with --seed-reference-brain or --corpus DIR, or check --brain",
        )
    return counts


async def verify_claims(
    client: ContractClient, plan: Plan, runner: SdkRunner, brain: str, query: str
) -> tuple[Mode, ...] | None:
    """Check that the daemon serves every mode that the SDK claims or the run needs.

    Returns the mode that `auto` stands for in this run, which is the daemon's choice; all questions
    must be served in it. None if nothing is known of it.

    Raises:
        DaemonError: `claim_refuted` if a mode is not served.
    """
    claimed, needed = runner.modes, plan.settings.mode
    auto_modes = None
    # Of conversation nothing is known here: without a turn in the brain it is served as auto.
    others = [mode for mode in claimed or () if mode is not Mode.CONVERSATION]
    for mode in dict.fromkeys((*others, needed)):
        settings = RetrievalSettings(brain, mode, top_k=1, auto_modes=auto_claim(runner))
        with record_exchanges() as exchanges:
            try:
                request = SearchRequest(query=query, top_k=1, mode=mode)
                answer, _ = await client.search(brain, request)
                require_requested_mode(settings, answer.trace)
            except CallError as error:
                if claimed is None and error.code != "mode_not_served":
                    # It may be this question's alone.
                    continue
                cause = f"{error.code}: {error.message}"
                from memconform.runs.remedies import mode_remedy  # noqa: PLC0415 - same

                # What a dialect cannot say is never sent.
                curl = exchanges[-1].curl() if exchanges else ""
                raise DaemonError(
                    f"{runner.name} does not serve mode {mode.value}: {cause}",
                    code="claim_refuted",
                    hint=mode_remedy(error, mode, needed, runner),
                    excerpt="\n".join(filter(None, (error.body, curl))),
                ) from error
        served = answer.trace.effective_mode
        if mode is Mode.AUTO and served is not None:
            auto_modes = (served,)
    return auto_modes


def require_same_auto(now: tuple[Mode, ...] | None, before: Collection[str]) -> None:
    """Raise DaemonError `mode_not_served` if a resumed run served `auto` in another mode."""
    others = sorted({*before} - {OWN, UNCONFIRMED, *(mode.value for mode in now or ())})
    if now is not None and others:
        raise DaemonError(
            f"auto is served as {now[0].value}, but was served as {' and '.join(others)} in the run"
            " that is resumed",
            code="mode_not_served",
            hint=f"start a new run, or configure the daemon as it was, or use --mode {others[0]}"
            " in a new run",
        )


def auto_claim(runner: SdkRunner) -> tuple[Mode, ...] | None:
    """Modes in which an SDK claims to serve `auto`; None leaves the choice to the daemon.

    One that claims hybrid serves `auto` as hybrid or, with the feature hash, as bm25
    (core.mode.served). A daemon that lacks the embedder is found out by its mode hybrid.
    """
    return runner.auto_modes if Mode.HYBRID in (runner.modes or ()) else None
