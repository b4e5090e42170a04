"""The SDKs of a replay: which take part, in which mode, and whether a filter holds for all."""

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path

from memconform.cli.lme.options import LmeOptions
from memconform.cli.lme.plan import upstream_of
from memconform.cli.lme.ports import port_of, require_ports
from memconform.cli.sdks import ALL, OF_ONE_SDK, build_sdks
from memconform.cli.values import configure_runner, daemon_variables, require_brain_id
from memconform.client.timings import Timeouts
from memconform.concurrency import is_cancelled
from memconform.contract.wire import Mode
from memconform.daemons.availability import SkippedSdk
from memconform.daemons.sdk_runner import Launch, SdkRunner
from memconform.errors import DaemonError, UsageError
from memconform.ingest.seeding import require_own_brain
from memconform.measuring.daemon_session import daemon_session
from memconform.printing.output import echo
from memconform.replay.filter_probe import honours_session_filter

_BY_PREFERENCE = (Mode.HYBRID_RERANK, Mode.HYBRID, Mode.BM25)
"""The mode without `--mode`: the first that every SDK claims."""


async def prepare_sdks(options: LmeOptions) -> tuple[list[SdkRunner], list[SkippedSdk]]:
    """Build the SDKs, and check what is asked of them; of several, one that cannot is skipped.

    Raises:
        UsageError: if none is named (`no_sdk`), if none can be replayed with these flags, or if
            --actor-brain is not an id (`bad_brain`).
        DaemonError: if none can be built.
    """
    if not options.sdk:
        raise UsageError(
            "retrieval needs a daemon",
            code="no_sdk",
            hint="give --sdk; --benchmark-mode oracle and full-context, a control each, need none",
        )
    require_brain_id("--actor-brain", options.actor_brain)
    present, skipped = await build_sdks(options.sdk, no_skip=options.no_skip, one_by_one=True)
    require_ports(options, [*(each.name for each, _ in present), *(sdk.sdk for sdk in skipped)])
    runners = []
    for runner, _ in present:
        try:
            _require_replayable(options, runner)
            runners.append(runner)
        except UsageError as error:
            if error.code not in OF_ONE_SDK or options.no_skip:
                raise
            skipped.append(SkippedSdk(runner.name, error, is_named=ALL not in options.sdk))
    if not runners:
        raise skipped[0].error
    for sdk in skipped:
        echo(f"  {sdk.sdk} is skipped: {sdk.error.message}", err=True)
    return runners, skipped


def _require_replayable(options: LmeOptions, runner: SdkRunner) -> None:
    configure_runner(runner, upstream_of(options, runner), daemon_variables(options.env))
    if options.ingest_mode == "none":
        _require_running(runner)
        return
    require_own_brain(runner, options.actor_brain, allowed=options.i_own_this_brain)
    if options.retrieval_mode is not None:
        runner.require_claimed(Mode(options.retrieval_mode))


def _require_running(runner: SdkRunner) -> None:
    """Raise UsageError (`no_brain`) for a daemon that cannot have been filled before."""
    if runner.managed:
        raise UsageError(
            f"--ingest-mode none: {runner.name} is started by memconform, with an empty brain",
            code="no_brain",
            hint="use --ingest-mode replay or bulk, or give --actor-endpoint URL",
        )


def retrieval_mode(options: LmeOptions, runners: Sequence[SdkRunner]) -> tuple[Mode, str]:
    """The mode of every search, and why.

    Without the flag it is the first of hybrid-rerank, hybrid and bm25 that every SDK claims; with
    memory systems, auto.

    Raises:
        UsageError: if they have none of these in common (`mode_not_claimed`).
    """
    if options.retrieval_mode is not None:
        mode = Mode(options.retrieval_mode)
        return mode, f"{mode.value}: --mode says so"
    if systems := [runner.name for runner in runners if not runner.has_contract]:
        return Mode.AUTO, f"auto: {', '.join(systems)} can search in one way only"
    lacking = {
        mode: [runner.name for runner in runners if not runner.claims(mode)]
        for mode in _BY_PREFERENCE
    }
    common = [mode for mode, names in lacking.items() if not names]
    if not common:
        raise UsageError(
            f"the SDKs have no mode in common: {'; '.join(_lacks(lacking, _BY_PREFERENCE))}",
            code="mode_not_claimed",
            hint="give --mode and the SDKs that claim it",
        )
    mode = common[0]
    better = _BY_PREFERENCE[: _BY_PREFERENCE.index(mode)]
    reasons = [*_lacks(lacking, better), "every SDK claims it"]
    return mode, f"{mode.value}: {', and '.join(reasons)}; --mode asks for another"


def _lacks(lacking: Mapping[Mode, Sequence[str]], modes: Sequence[Mode]) -> list[str]:
    return [f"{mode.value} is not claimed by {', '.join(lacking[mode])}" for mode in modes]


async def try_session_filter(
    options: LmeOptions,
    runners: Sequence[SdkRunner],
    folder: Path,
    *,
    timeouts: Timeouts,
    headers: Mapping[str, str],
) -> tuple[bool, str]:
    """Whether each question is asked of its own sessions alone, and why.

    Every SDK is started and tried, before anything is paid for: one SDK with an oracle's filter is
    no comparison. Of several, one that fails is not asked: the replay tries it again, and its
    result says what it fails at.

    Raises:
        UsageError: with `on`, if an SDK does not honour the filter (`filter_not_honoured`).
        DaemonError: if no SDK starts, or all fail with three documents.
    """
    flag = options.actor_filter_question_sessions
    if flag == "off":
        return False, "off: every question is asked of all sessions"
    if flag == "auto" and options.ingest_mode == "none":
        return False, "auto: nothing is tried on a daemon that somebody else has filled"
    refused: list[str] = []
    failed: dict[str, DaemonError] = {}
    for number, runner in enumerate(runners):
        probes = folder / "logs" / "probes"
        # Of its own: what is left of a run id is ended with its daemon.
        run_id = f"probe-{runner.name}-{secrets.token_hex(4)}"
        launch = Launch(
            run_id=run_id,
            folder=probes / f"{runner.name}-{len(list(probes.glob('*'))) + 1:03}",
            port=port_of(options, runner, number),
        )
        try:
            async with daemon_session(
                runner,
                launch,
                upstream_of(options, runner),
                connections=2,
                timeouts=timeouts,
                headers=headers,
                rank_by=options.rank_by,
            ) as session:
                mode, _ = retrieval_mode(options, runners)
                if not await honours_session_filter(session, runner, f"mc-{run_id}", mode):
                    refused.append(runner.name)
        except DaemonError as error:
            if is_cancelled():
                raise asyncio.CancelledError from error
            failed[runner.name] = error
            echo(f"  {runner.name}: the session filter could not be tried: {error.code}", err=True)
    if len(failed) == len(runners):
        raise next(iter(failed.values()))
    untried = "".join(f"; {name} could not be tried" for name in failed)
    if not refused:
        return True, (
            f"{flag}: every SDK{' that was tried' if failed else ''} honours it, so that each"
            f" question is asked of its sessions{untried}"
        )
    if flag == "on":
        raise UsageError(
            f"{refused[0]} does not honour the filter by sessions (core.filter)",
            code="filter_not_honoured",
            hint="use --actor-filter-question-sessions auto or off",
        )
    verb = "does" if len(refused) == 1 else "do"
    return False, (
        f"auto: {', '.join(refused)} {verb} not honour it, so that every question is asked of all"
        f" sessions, by all SDKs{untried}"
    )
