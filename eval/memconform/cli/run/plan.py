"""Plans runs: resolves the command line into questions, SDKs and settings."""

import sys
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path

from memconform.cli.run.command import EXISTING_BRAIN, RunOptions
from memconform.cli.sdks import (
    ALL,
    OF_ONE_SDK,
    UNCLAIMED,
    every_sdk,
    find_runner,
    require_distinct_names,
)
from memconform.cli.values import (
    configure_runner,
    daemon_variables,
    question_ids,
    request_headers,
    require_brain_id,
)
from memconform.client.timings import Timeouts
from memconform.contract.dialect import ranked_by
from memconform.contract.wire import Mode, Profile
from memconform.daemons.availability import SkippedSdk, as_built, build_all
from memconform.daemons.discovery import working_folder
from memconform.daemons.sdk_runner import Progress, SdkRunner
from memconform.datasets.registry import corpus_of, open_dataset
from memconform.datasets.selection import SelectedQuestions, Selection, select
from memconform.datasets.sharding import Shard
from memconform.errors import UsageError
from memconform.ingest.documents import CorpusFolder, ReferenceAnswers
from memconform.ingest.seeding import require_own_brain
from memconform.measuring.scenarios import SCENARIOS
from memconform.runs.journal import Header, adoptable_attempts
from memconform.runs.plan import Plan, Settings, read_floors
from memconform.scoring.scorer import OpenScorer
from memconform.storage.folders import find_journal
from memconform.storage.journal import read_header, require_same_settings


@dataclass(frozen=True, slots=True)
class PlannedRuns:
    """The runs of a command, in order, and the SDKs that it skips."""

    runs: list[tuple[Plan, SdkRunner]]
    skipped: list[SkippedSdk]
    to_build: bool = False
    """Whether the SDKs must still be built, so that more of them may be skipped."""

    async def ready(
        self, progress: Progress, on_state: Callable[[str, str], None]
    ) -> AsyncGenerator[tuple[Plan, SdkRunner], None]:
        """Yield each run as soon as it can start; an SDK that does not build is added to `skipped`.

        Before anything is cached, this runs one daemon while others are still being compiled.
        """
        if not self.to_build:
            for run in self.runs:
                yield run
            return
        plans = {runner: plan for plan, runner in self.runs}
        async with aclosing(as_built(list(plans), progress, on_state)) as builds:
            async for runner, skipped_sdk in builds:
                if skipped_sdk is None:
                    yield plans[runner], runner
                else:
                    self.skipped.append(skipped_sdk)


async def plan_runs(
    options: RunOptions, selected: SelectedQuestions, scorer: OpenScorer, progress: Progress
) -> PlannedRuns:
    """Plan the runs of a command line.

    `--sdk all` skips SDKs that cannot be built here or do not claim the requested features. Of
    several that are named, one that does not claim them does not keep the others from being run;
    its error decides the exit code.

    Raises:
        UsageError: if a flag or a file is invalid, or no SDK claims the requested features.
        DaemonError: with `--no-skip`, if an SDK cannot be built.
    """
    if not options.sdk:
        raise UsageError("nothing to ask", code="no_sdk", hint="give --sdk or --system")
    folder = working_folder()
    if ALL not in options.sdk:
        runners = [find_runner(reference, folder) for reference in options.sdk]
        require_distinct_names(runners)
        corpus = _corpus(options, selected, runners)
        runs, skipped = _plan_each(options, selected, corpus, scorer, runners, OF_ONE_SDK)
        if not runs:
            raise skipped[0].error
        reference_of = dict(zip(runners, options.sdk, strict=True))
        return PlannedRuns(
            [(replace(plan, reference=reference_of[runner]), runner) for plan, runner in runs],
            [replace(sdk, is_named=True) for sdk in skipped],
        )
    candidates = [find_runner(name, folder) for name in every_sdk(options.sdk, folder)]
    require_distinct_names(candidates)
    # --no-skip and --port need to know all SDKs before the first run: ports are given in order.
    build_first = options.no_skip or bool(options.port)
    present, skipped = await build_all(candidates, progress) if build_first else (candidates, [])
    corpus = _corpus(options, selected, candidates)
    runs, unclaimed = _plan_each(options, selected, corpus, scorer, present, UNCLAIMED)
    skipped += unclaimed
    if skipped and (options.no_skip or not runs):
        raise skipped[0].error
    return PlannedRuns(runs, skipped, to_build=not build_first)


def _plan_each(  # noqa: PLR0917 - what a plan is made of
    options: RunOptions,
    selected: SelectedQuestions,
    corpus: "_Corpus",
    scorer: OpenScorer,
    runners: Sequence[SdkRunner],
    skipping: Collection[str],
) -> tuple[list[tuple[Plan, SdkRunner]], list[SkippedSdk]]:
    """Plan a run of each SDK; those whose error has a code of `skipping` are skipped."""
    runs: list[tuple[Plan, SdkRunner]] = []
    skipped: list[SkippedSdk] = []
    for runner in runners:
        try:
            runs.append((_plan(options, selected, corpus, scorer, runner, len(runs)), runner))
        except UsageError as error:
            if error.code not in skipping:
                raise
            skipped.append(SkippedSdk(runner.name, error))
    return runs, skipped


def select_questions(options: RunOptions) -> SelectedQuestions:
    """Select the questions of a command line.

    Raises:
        UsageError: if flags contradict each other, or the dataset cannot be read.
        NothingSelectedError: if no question is left.
    """
    if options.resume is not None and (len(options.sdk) > 1 or ALL in options.sdk):
        raise UsageError(
            "--resume continues one run, and needs exactly one --sdk",
            code="resume_many",
            hint="resume one run after another",
        )
    if options.seed_reference_brain and options.corpus is not None:
        raise UsageError(
            "--seed-reference-brain and --corpus exclude each other",
            code="two_seeds",
            hint="give only one of them",
        )
    ids = question_ids(options.ids)
    if options.brain is not None:
        require_brain_id("--brain", options.brain)
    if not str(options.output).isprintable():
        raise UsageError("--output is not a printable path", code="bad_output", hint="rename it")
    dataset = open_dataset(options.dataset)
    shard = None if options.shard is None else Shard.parse(options.shard)
    return select(dataset, Selection(ids, options.tag, options.limit, shard))


_Corpus = CorpusFolder | ReferenceAnswers | None
"""Source of the documents to seed a brain with; None asks an existing brain."""


def _corpus(
    options: RunOptions, selected: SelectedQuestions, runners: Sequence[SdkRunner]
) -> _Corpus:
    """Choose the corpus: the flags decide; otherwise the dataset's own, if we start all daemons.

    A daemon that we start has no documents of its own. One that already runs may have some, so its
    brain `eval` is asked. All SDKs get the same corpus, because otherwise they could not agree.
    """
    dataset = selected.dataset
    if options.seed_reference_brain:
        return ReferenceAnswers(dataset)
    if options.corpus is not None:
        is_dataset_name = str(options.corpus) == dataset.name
        return CorpusFolder((is_dataset_name and corpus_of(dataset)) or options.corpus)
    if options.brain is not None or not all(runner.managed for runner in runners):
        return None
    if (folder := corpus_of(dataset)) is not None:
        return CorpusFolder(folder)
    # A question without an answer in the brain would count as incorrect.
    has_answer = {q.reference_answer is not None for q in dataset if not q.abstain}
    return ReferenceAnswers(dataset) if has_answer == {True} else None


def _embed_variables(options: RunOptions) -> dict[str, str]:
    """The variables that `--embed-model` sets.

    Raises:
        UsageError: `no_embedder` without the scripted upstream; as `chosen_embedder`.
    """
    if options.embed_model is None:
        return {}
    if options.upstream != "scripted":
        raise UsageError(
            "--embed-model needs a server for that model",
            code="no_embedder",
            hint="add --upstream scripted",
        )
    from memconform.upstream.embedders import chosen_embedder  # noqa: PLC0415 - few runs name a model

    return {
        "JB_EMBED_MODEL": chosen_embedder(options.embed_model).name,
        # A trained model on a slow machine needs longer for a batch than daemons wait by default.
        "JB_UPSTREAM_TIMEOUT": f"{options.timeout:g}",
    }


def _plan(  # noqa: PLR0917 - what a plan is made of
    options: RunOptions,
    selected: SelectedQuestions,
    corpus: _Corpus,
    scorer: OpenScorer,
    runner: SdkRunner,
    index: int,
) -> Plan:
    if options.port and options.port + index > 65535:
        raise UsageError(
            f"--port {options.port} leaves no port for the last SDK",
            code="bad_port",
            hint="each SDK gets one port, counting up from --port",
        )
    mode = Mode(options.mode)
    configure_runner(
        runner, options.upstream, _embed_variables(options) | daemon_variables(options.env)
    )
    _require_claimed_mode(runner, mode, options)
    if not runner.has_contract and (options.candidate_k or options.rerank_top_n):
        raise UsageError(
            f"--candidate-k and --rerank-top-n are for daemons, and {runner.name} is a system",
            code="bad_option",
            hint="omit them",
        )
    runner.use_modes([mode])
    if corpus is not None and options.brain is not None:
        require_own_brain(runner, options.brain, allowed=options.i_own_this_brain)
    settings = Settings(
        dataset=selected.dataset.name,
        dataset_sha256=selected.dataset.sha256,
        questions=selected.size,
        rows=None if selected.rows is None else sorted(selected.rows),
        shard=selected.shard,
        scenario=options.scenario,
        mode=mode,
        scorer=scorer.name,
        judge=scorer.judge,
        # No name: no other run can empty or fill a brain whose name it does not know.
        brain=options.brain or (EXISTING_BRAIN if corpus is None else None),
        top_k=options.top_k,
        candidate_k=options.candidate_k,
        rerank_top_n=options.rerank_top_n,
        allow_fallback=options.allow_fallback,
        rank_by=ranked_by(runner.dialect, options.rank_by),
        repeat=options.repeat,
        seeding=None if corpus is None else corpus.identity,
        upstream=options.upstream,
        variables=runner.variables(),
        build_hash=runner.build_hash(),
    )
    return Plan(
        settings=settings,
        selected=selected,
        output=options.output,
        floors=read_floors(options.floor),
        scorer=scorer.scorer,
        calibrations=scorer.calibrations,
        corpus=corpus,
        port=options.port + index if options.port else 0,
        concurrency=options.concurrency,
        timeouts=Timeouts(
            total=options.timeout,
            connect=options.timeout_connect,
            first=options.timeout_first,
            gap=options.timeout_gap,
        ),
        headers=request_headers(options.header),
        reverify=options.reverify and runner.has_contract,
        command=tuple(part.encode("utf-8", "replace").decode() for part in sys.argv),
        resumed=_resumed(options, settings, runner.name),
    )


def _resumed(options: RunOptions, settings: Settings, sdk: str) -> Path | None:
    """Find the journal to resume from.

    Raises:
        UsageError: if that run had other settings (code `resume_mismatch`).
    """
    if options.resume is None:
        return None
    journal = find_journal(options.output, options.resume)
    header = read_header(journal, Header)
    earlier = header.settings
    if earlier.build_hash != settings.build_hash:
        attempts = adoptable_attempts(journal, reverify=options.reverify)
        if next(attempts, None) is None:
            # The other build measured nothing: it lacked a tool, or crashed.
            earlier = earlier.model_copy(update={"build_hash": settings.build_hash})
    require_same_settings(
        journal,
        {"sdk": header.sdk} | earlier.model_dump(mode="json"),
        {"sdk": sdk} | settings.model_dump(mode="json"),
        hint="give the same flags as in its manifest.json; if the daemon's build or the dataset"
        " has changed, start a new run",
    )
    return journal


def _require_claimed_mode(runner: SdkRunner, mode: Mode, options: RunOptions) -> None:
    needs_ask = SCENARIOS[options.scenario].text_kind == "answer"
    if needs_ask and Profile.ASK not in runner.profiles:
        raise UsageError(
            f"{runner.name} does not claim the profile ask, which {options.scenario} needs",
            code="profile_not_claimed",
            hint="use --scenario search-retrieve-only",
        )
    if not options.allow_fallback:
        runner.require_claimed(mode, more="measure whatever it serves with --allow-fallback")
