"""What `memconform lme run` and `lme tri` do."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from memconform.cli.events import dispatch
from memconform.cli.interrupts import cancel_on_signals, run_to_end
from memconform.cli.judge_session import judge_spec
from memconform.cli.lme.checks import require_consistent
from memconform.cli.lme.models import ReplayModels, replay_models
from memconform.cli.lme.options import LmeOptions
from memconform.cli.lme.plan import (
    ReplayData,
    benchmark_modes,
    read_data,
    require_searchable,
    retrieval_settings,
    upstream_of,
)
from memconform.cli.lme.ports import port_of
from memconform.cli.lme.reports import continuation_hint, report_replay
from memconform.cli.lme.sdks import prepare_sdks, retrieval_mode, try_session_filter
from memconform.cli.options import subjects
from memconform.cli.sdks import ALL
from memconform.cli.values import request_headers
from memconform.client.timings import Timeouts
from memconform.contract.dialect import ranked_by
from memconform.daemons.availability import SkippedSdk
from memconform.daemons.sdk_runner import SdkRunner
from memconform.errors import ExitCode, UsageError
from memconform.llm.accounting import dollars
from memconform.llm.session import LlmSession, Model
from memconform.printing.logs import configure_logs
from memconform.printing.output import echo
from memconform.replay.agent import MAX_SECONDS, Agent
from memconform.replay.agent_prompts import MAX_TURNS
from memconform.replay.brain_build import make_brain
from memconform.replay.events import ReplayFinished
from memconform.replay.extraction import prompt_digest
from memconform.replay.fact_context import prompt_digest as context_digest
from memconform.replay.manifest import claimed_folder, command_line, require_continuable
from memconform.replay.plan import Part, ReplayControl, ReplayPlan
from memconform.replay.reader_prompts import ReplayWording
from memconform.replay.records import ReplaySettings
from memconform.replay.schedule import replay
from memconform.replay.shared_brain import (
    BrainFile,
    BrainKey,
    brain_path,
    make_brains_folder,
    read_brain,
)
from memconform.reports.lme import LmeConsole, heuristic_notes, lme_readme
from memconform.reports.progress import StepProgress
from memconform.scoring.judge.prompt import MAX_CANDIDATE
from memconform.scoring.judge.rubrics import OWN_RUBRICS
from memconform.scoring.judge.scorer import JudgeScorer
from memconform.scoring.judge.session import open_session
from memconform.scoring.reader.passages import BYTES_PER_TOKEN
from memconform.scoring.reader.reader import Reader
from memconform.storage.folders import new_run_id
from memconform.storage.sink import replacing
from memconform.user_cache import cache_folder

_MOST_TOKENS = 1_000_000_000
_RESERVED_TOKENS = 6_000
"""Part of the context window kept for instructions, question, notes and answer."""


def run(options: LmeOptions) -> ExitCode:
    """Replay one SDK, or controls without one.

    Raises:
        UsageError: for flags, data or models that cannot be used.
        DaemonError: if the SDK cannot be built.
    """
    options = _with_systems(options)
    if options.actor_endpoint is not None:
        if options.sdk:
            raise UsageError(
                "--sdk and --actor-endpoint exclude each other",
                code="bad_option",
                hint="give one of them",
            )
        options = replace(options, sdk=(f"url:{options.actor_endpoint}",))
    if len(options.sdk) > 1 or ALL in options.sdk:
        raise UsageError(
            "lme run replays one SDK", code="bad_option", hint="use memconform lme tri for several"
        )
    return _replay(options, "lme")


def tri(options: LmeOptions) -> ExitCode:
    """Replay several SDKs, and compare them; raises as `run`."""
    options = _with_systems(options)
    return _replay(options if options.sdk else replace(options, sdk=(ALL,)), "tri-lme")


def _with_systems(options: LmeOptions) -> LmeOptions:
    return replace(options, sdk=subjects(options.sdk, options.system))


def _replay(options: LmeOptions, kind: str) -> ExitCode:
    configure_logs(options.log_level)
    started = datetime.now(UTC)
    require_consistent(options)
    models = replay_models(options)
    data = read_data(options)
    folder = options.output or Path("results") / f"{kind}-{started:%Y%m%dT%H%M%SZ}"
    with claimed_folder(folder), continuation_hint(folder):
        work = _Work(options, data, models, folder, started, kind)
        return run_to_end(work.carry_out())


@dataclass(frozen=True, slots=True)
class _Work:
    """What was asked for, read and checked."""

    options: LmeOptions
    data: ReplayData
    models: ReplayModels
    folder: Path
    started: datetime
    kind: str
    mode_rule: str = ""
    """Which mode every daemon is searched in, and why."""
    skipped: tuple[SkippedSdk, ...] = ()

    async def carry_out(self) -> ExitCode:
        cancel_on_signals()
        options = self.options
        modes = benchmark_modes(options, self.data, tri=self.kind == "tri-lme")
        if not options.extract_only:
            # Before a daemon is built or started.
            self.models.require_settings(reads=self._reads(modes))
        runners: list[SdkRunner] = []
        skipped: list[SkippedSdk] = []
        if not options.extract_only and any(mode is None for mode in modes):
            runners, skipped = await prepare_sdks(options)
        mode, rule = retrieval_mode(options, runners)
        if runners and options.retrieval_mode is None:
            echo(f"  retrieval mode {rule}", err=True)
        work = replace(
            self,
            options=replace(options, retrieval_mode=mode.value),
            mode_rule=rule,
            skipped=tuple(skipped),
        )
        return await work.replay(runners, modes)

    async def replay(
        self, runners: Sequence[SdkRunner], modes: Sequence[ReplayControl | None]
    ) -> ExitCode:
        """Make the brain, and replay the SDKs and controls."""
        options = self.options
        key = self._key()
        # Whatever would refuse the replay later does so before anything is paid for.
        if not options.extract_only:
            self._require_continuable(key, runners, modes)
        session_filter = await self._session_filter(runners)
        names = self.models.needed(extracts=key.mode == "replay")
        spec = judge_spec(options)
        async with open_session(
            names, replace(spec, budget_usd=self.models.budget_usd), self.models.options.model_env,
            ledger=self.folder / "ledger.sqlite",
        ) as session:  # fmt: skip
            if not options.extract_only:
                self._require_callable(session, modes)
            brain = await self._brain(session, key)
            notes = heuristic_notes(brain.record)
            for note in notes:
                echo(f"  {note}", err=True)
            if options.extract_only:
                echo(f"{brain.size} documents -> {brain.path}")
                return ExitCode.OK
            if not any(modes):
                self.data.sessions.drop_turns()
            plan = self._plan(session, brain, runners, modes, session_filter)
            run_id = new_run_id(self.started, self.kind, "replay")
            with LmeConsole(plan, quiet=options.quiet) as console:
                finished = await dispatch(replay(plan, run_id), [console.handle])
            spent = dollars(session.ledger.committed)
        if not isinstance(finished, ReplayFinished):
            raise TypeError(f"the replay ended with {finished}")
        if provider := os.environ.get("JB_LLM_PROVIDER"):
            notes = [*notes, f"The command ran with JB_LLM_PROVIDER={provider}."]
        notes += [f"{sdk.sdk} is skipped: {sdk.error.message}" for sdk in self.skipped]
        notes += [f"Retrieval mode {self.mode_rule}"] if runners else []
        with replacing(self.folder / "README.md") as target:
            target.write_text(lme_readme(finished, notes, spent))
        return report_replay(options, finished, self.skipped)

    def _key(self) -> BrainKey:
        mode = self.options.ingest_mode
        with_facts, without = (self._key_of(extracts=extracts) for extracts in (True, False))
        if mode == "none":
            # What the daemon was filled with is what an earlier command has made.
            return with_facts if brain_path(self._brains, with_facts).exists() else without
        return with_facts if mode in ("replay", "agentic") else without

    def _key_of(self, *, extracts: bool) -> BrainKey:
        models = self.models
        return BrainKey(
            dataset_sha256=self.data.sha256,
            questions=tuple(self.data.sessions.paths),
            mode="replay" if extracts else "bulk",
            project=self.options.actor_project or "lme",
            extractor=str(models.extractor) if extracts else None,
            extractor_address=models.extractor_address if extracts else "",
            prompt=prompt_digest() if extracts else None,
            context_prompt=context_digest() if extracts and self.options.contextualise else None,
        )

    @property
    def _brains(self) -> Path:
        return self.options.brain_cache or cache_folder() / "brains"

    async def _brain(self, session: LlmSession, key: BrainKey) -> BrainFile:
        options = self.options
        path = brain_path(self._brains, key)
        make_brains_folder(path.parent)
        try:
            known = read_brain(path, key)
        except UsageError as error:
            if options.skip_extract:
                raise
            echo(f"  {error.message}; it is made again", err=True)
            known = None
        if known is None and options.skip_extract:
            raise UsageError(
                "no earlier command has made the brain of these questions and this extractor",
                code="no_brain",
                hint="omit --skip-extract",
            )
        total = len(self.data.sessions.sessions)
        with StepProgress("extracting facts", total, quiet=options.quiet) as console:
            return await make_brain(
                session,
                self.models.extractor,
                path,
                key,
                self.data.sessions,
                known=known,
                report=self.folder / "extract.json",
                workers=options.replay_concurrency,
                context_cache=options.contextualise_cache_dir,
                progress=console.advance,
                command=command_line(),
            )

    def _require_continuable(
        self, key: BrainKey, runners: Sequence[SdkRunner], modes: Sequence[ReplayControl | None]
    ) -> None:
        require_continuable(
            self.folder,
            [*(mode for mode in modes if mode is not None), *(each.name for each in runners)],
            dataset_sha256=self.data.sha256,
            questions=[question.id for question in self.data.questions],
            endpoint_style=self.options.actor_endpoint_style,
            brain=key.digest,
        )

    def _require_callable(self, session: LlmSession, modes: Sequence[ReplayControl | None]) -> None:
        """Raise UsageError for a reader or judge without a key or a price."""
        if self._reads(modes):
            self.models.open_reader(session)
        self.models.open_judges(session)

    def _reads(self, modes: Sequence[ReplayControl | None]) -> bool:
        """Whether our reader answers."""
        style = self.options.actor_endpoint_style
        return not self.options.no_reader and (style == "retrieve-only" or any(modes))

    async def _session_filter(self, runners: Sequence[SdkRunner]) -> tuple[bool, str]:
        if not runners:
            return False, "no daemon is asked"
        options = self.options
        return await try_session_filter(
            options,
            runners,
            self.folder,
            timeouts=_timeouts(options),
            headers=request_headers(options.header),
        )

    def _plan(
        self,
        session: LlmSession,
        brain: BrainFile,
        runners: Sequence[SdkRunner],
        modes: Sequence[ReplayControl | None],
        session_filter: tuple[bool, str],
    ) -> ReplayPlan:
        options, models = self.options, self.models
        spec = judge_spec(options)
        reader = judge = None
        wording = ReplayWording()
        evidence_tokens = 0
        judges = models.open_judges(session)
        if self._reads(modes):
            model = models.open_reader(session)
            reader = Reader(model, wording, "direct")
            evidence_tokens = _evidence_tokens(options, [model])
        elif options.no_reader:
            # A judge that sees a part cannot call the whole wrong.
            seen = MAX_CANDIDATE // BYTES_PER_TOKEN if judges else _MOST_TOKENS
            evidence_tokens = min(_evidence_tokens(options, judges), seen)
        if judges:
            judge = JudgeScorer(
                judges,
                repeat=spec.repeat,
                tie=spec.tie,
                rubric=OWN_RUBRICS["longmemeval"],
            )
        agent = None
        if reader and options.ingest_mode == "agentic":
            agent = Agent(
                reader.model,
                max_turns=options.max_iterations or MAX_TURNS,
                max_seconds=options.question_timeout or MAX_SECONDS,
            )
        honoured, rule = session_filter
        retrieval = retrieval_settings(options)
        retrieval = retrieval.model_copy(update={"session_filter": honoured})
        if runners:
            require_searchable(brain, retrieval)
        parts = [Part(str(mode), control=mode) for mode in modes if mode is not None] + [
            Part(
                runner.name,
                runner,
                port=port_of(options, runner, number),
                upstream=upstream_of(options, runner),
                rank_by=ranked_by(runner.dialect, options.rank_by),
            )
            for number, runner in enumerate(runners)
        ]
        return ReplayPlan(
            questions=self.data.questions,
            parts=tuple(parts),
            sessions=self.data.sessions,
            brain=brain,
            project=brain.record.key.project,
            settings=ReplaySettings(
                dataset_sha256=self.data.sha256,
                questions=[question.id for question in self.data.questions],
                shard=self.data.shard,
                benchmark_mode="oracle" if self.data.is_oracle else "real-retrieval",
                endpoint_style=options.actor_endpoint_style,
                ingest_mode=brain.record.key.mode,
                agentic=options.ingest_mode == "agentic",
                brain=brain.record.key.digest,
                retrieval=retrieval,
                reader=reader.model.settings if reader else None,
                reader_prompt=agent.digest() if agent else wording.digest() if reader else "",
                evidence_tokens=evidence_tokens,
                judge=judge.settings if judge else None,
            ),
            reader=reader,
            agent=agent,
            judge=judge,
            brain_name=options.actor_brain,
            is_filled=options.ingest_mode == "none",
            concurrency=options.concurrency,
            timeouts=_timeouts(options),
            headers=request_headers(options.header),
            command=command_line(),
            folder=self.folder,
            session_filter_rule=rule,
            mode_rule=self.mode_rule if runners else "",
        )


def _evidence_tokens(options: LmeOptions, models: Sequence[Model]) -> int:
    """Tokens of evidence that fit into the context of every model; all of it if there is none.

    Raises:
        UsageError: if the context of a model is not known (`context_unknown`).
    """
    contexts = [_MOST_TOKENS]
    for model in models:
        context = options.context_tokens or model.traits.context_tokens
        if context is None:
            raise UsageError(
                f"the context window of {model.name} is not known",
                code="context_unknown",
                hint="give it as --context-tokens N",
            )
        contexts.append(context)
    return max(1_000, min(contexts) - _RESERVED_TOKENS)


def _timeouts(options: LmeOptions) -> Timeouts:
    return Timeouts(total=options.timeout, first=options.timeout, gap=options.timeout)
