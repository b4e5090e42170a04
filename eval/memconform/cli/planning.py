"""From the command line of `run` to what is carried out: questions, SDKs, plans."""

import re
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

from memconform.cli.run_options import EXISTING_BRAIN, RunOptions
from memconform.cli.values import comma_separated, daemon_variables, read_floors, request_headers
from memconform.client.timing import Timeouts
from memconform.contract.core import BRAIN_ID_PATTERN
from memconform.contract.wire import Mode, Profile
from memconform.daemons.availability import SkippedSdk, as_built, build_all
from memconform.daemons.discovery import find_runner, known_sdks, working_folder
from memconform.daemons.runner import Progress, SdkRunner
from memconform.datasets.registry import corpus_of, open_dataset
from memconform.datasets.selection import SelectedQuestions, Selection, select
from memconform.errors import UsageError
from memconform.ingest.documents import CorpusFolder, ReferenceAnswers
from memconform.ingest.seeding import require_own_brain
from memconform.printing.output import echo
from memconform.runs.journal import read_header
from memconform.runs.plan import Plan, Settings
from memconform.scenarios import SCENARIOS
from memconform.scoring import scorer_of
from memconform.storage.folders import find_journal

ALL = "all"
_UNCLAIMED = ("profile_not_claimed", "mode_not_claimed", "no_upstream")


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a command carries out, one after another, and what it leaves out."""

    runs: list[tuple[Plan, SdkRunner]]
    absences: list[SkippedSdk]
    to_build: bool = False
    """Whether SDKs are still to be built, which may show that they cannot run here."""

    async def ready(self, progress: Progress) -> AsyncGenerator[tuple[Plan, SdkRunner], None]:
        """The runs, each as soon as it can begin; what cannot be built is added to `absences`.

        On the first call on a machine one daemon is asked while others are compiled.
        """
        if not self.to_build:
            for run in self.runs:
                yield run
            return
        plans = {runner: plan for plan, runner in self.runs}
        async with aclosing(as_built(list(plans), progress)) as ended:
            async for runner, absence in ended:
                if absence is None:
                    yield plans[runner], runner
                else:
                    self.absences.append(absence)


async def plan_runs(options: RunOptions, progress: Progress) -> Chosen:
    """The runs that the command line asks for.

    Of `--sdk all` those SDKs are left out that cannot be built here, or do not claim what is asked.

    Raises:
        UsageError: where nothing can be carried out as it is.
        DaemonError: with `--no-skip`, where an SDK cannot be built.
    """
    selected = _selected_questions(options)
    folder = working_folder()
    if ALL not in options.sdk:
        runners = [find_runner(reference, folder) for reference in options.sdk]
        require_distinct_names(runners)
        corpus = _corpus(options, selected, runners)
        runs = [(_plan(options, selected, corpus, r, n), r) for n, r in enumerate(runners)]
        return Chosen(runs, [])
    every = [find_runner(name, folder) for name in every_sdk(options.sdk, folder)]
    require_distinct_names(every)
    # Where all must run, or each has a port by its place, it must be known first which there are.
    wait = options.no_skip or bool(options.port)
    present, absences = await build_all(every, progress) if wait else (every, [])
    corpus = _corpus(options, selected, every)
    runs = []
    for runner in present:
        try:
            runs.append((_plan(options, selected, corpus, runner, len(runs)), runner))
        except UsageError as error:
            if error.code not in _UNCLAIMED:
                raise
            absences.append(SkippedSdk(runner.name, error))
    if absences and (options.no_skip or not runs):
        raise absences[0].error
    return Chosen(runs, absences, to_build=not wait)


async def build_sdks(
    given: Sequence[str], *, no_skip: bool
) -> tuple[list[tuple[SdkRunner, str]], list[SkippedSdk]]:
    """The SDKs of `--sdk`, each with what it was called, built; and what `all` leaves out.

    Raises:
        MemconformError: where one that was named, or with `no_skip` any, cannot run here.
    """
    folder = working_folder()
    references = every_sdk(list(given), folder) if ALL in given else list(given)
    runners = [find_runner(reference, folder) for reference in references]
    require_distinct_names(runners)
    named = dict(zip((r.name for r in runners), references, strict=True))
    present, absences = await build_all(runners, lambda line: echo(f"  {line}", err=True))
    if absences and (ALL not in given or no_skip or not present):
        raise absences[0].error
    return [(runner, named[runner.name]) for runner in present], absences


def require_distinct_names(runners: Sequence[SdkRunner]) -> None:
    """Raise UsageError where two SDKs have one name."""
    names = [runner.name for runner in runners]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(
                f"SDK {name!r} was given twice",
                code="one_name_twice",
                hint="name each SDK once; `name` in its sdk.toml is what counts",
            )


def every_sdk(references: Sequence[str], folder: Path) -> list[str]:
    """The names of all SDKs that are known, for `--sdk all`.

    Raises:
        UsageError: where there is none, or more than `all` was asked for.
    """
    if len(references) > 1:
        raise UsageError(
            "--sdk all is every SDK there is",
            code="all_and_more",
            hint="give all alone, or name the SDKs",
        )
    every = list(known_sdks(folder))
    if not every:
        raise UsageError(
            "no SDK found: the reference SDKs need a checkout of the project",
            code="unknown_sdk",
            hint="name SDKs in a memconform.toml, or give --sdk a path to sdk.toml",
        )
    return every


def _selected_questions(options: RunOptions) -> SelectedQuestions:
    scorer = scorer_of(options.scorer)
    if options.resume is not None and (len(options.sdk) > 1 or ALL in options.sdk):
        raise UsageError(
            "--resume goes on with one run, and so with one --sdk",
            code="resume_many",
            hint="resume run after run",
        )
    if options.seed_reference_brain and options.corpus is not None:
        raise UsageError(
            "--seed-reference-brain and --corpus both fill the brain",
            code="two_seeds",
            hint="give one of them",
        )
    ids = comma_separated(options.ids)
    if options.ids and not ids:
        raise UsageError("--ids names no question", code="no_ids", hint="write --ids A,B")
    brain = options.brain
    if brain is not None and (not re.fullmatch(BRAIN_ID_PATTERN, brain) or brain in (".", "..")):
        raise UsageError(
            f"--brain {brain!r} is not a brain id",
            code="bad_brain",
            hint="1 to 128 of A-Z a-z 0-9 . _ -, and not . or ..",
        )
    if not str(options.output).isprintable():
        raise UsageError("--output is not a printable path", code="bad_output", hint="rename it")
    dataset = open_dataset(options.dataset)
    selected = select(dataset, Selection(ids=ids, tags=options.tag, limit=options.limit))
    scorer.require_scorable(selected)
    return selected


_Corpus = CorpusFolder | ReferenceAnswers | None
"""What a brain is filled with; None asks one that is there."""


def _corpus(
    options: RunOptions, selected: SelectedQuestions, runners: Sequence[SdkRunner]
) -> _Corpus:
    """What the flags say; else the dataset's own documents, for daemons that are all ours.

    A daemon that we start has nothing else to be asked about. One that runs already may have, so
    that its `eval` is asked; and if SDKs were asked about different things, they could not agree.
    """
    dataset = selected.dataset
    if options.seed_reference_brain:
        return ReferenceAnswers(dataset)
    if options.corpus is not None:
        named = str(options.corpus) == dataset.name
        return CorpusFolder((named and corpus_of(dataset)) or options.corpus)
    if options.brain is not None or not all(runner.managed for runner in runners):
        return None
    if (folder := corpus_of(dataset)) is not None:
        return CorpusFolder(folder)
    # What has no answer in the brain would be called incorrect.
    answered = {q.reference_answer is not None for q in dataset if not q.abstain}
    return ReferenceAnswers(dataset) if answered == {True} else None


def _plan(
    options: RunOptions, selected: SelectedQuestions, corpus: _Corpus, runner: SdkRunner, index: int
) -> Plan:
    if options.port and options.port + index > 65535:
        raise UsageError(
            f"--port {options.port} leaves no port for the last SDK",
            code="bad_port",
            hint="ports are taken upwards from --port, one an SDK",
        )
    mode = Mode(options.mode)
    runner.use_upstream(options.upstream)
    runner.use_variables(daemon_variables(options.env))
    _require_claimed_mode(runner, mode, options)
    if corpus is not None and options.brain is not None:
        require_own_brain(runner, options.brain, allowed=options.i_own_this_brain)
    settings = Settings(
        dataset=selected.dataset.name,
        dataset_sha256=selected.dataset.sha256,
        questions=selected.size,
        rows=None if selected.rows is None else sorted(selected.rows),
        scenario=options.scenario,
        mode=mode,
        scorer=options.scorer,
        # Another run cannot empty, or fill, a brain whose name it does not know.
        brain=options.brain or (EXISTING_BRAIN if corpus is None else None),
        top_k=options.top_k,
        candidate_k=options.candidate_k,
        rerank_top_n=options.rerank_top_n,
        allow_fallback=options.allow_fallback,
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
        scorer=scorer_of(options.scorer),
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
        reproof=options.reproof,
        command=tuple(part.encode("utf-8", "replace").decode() for part in sys.argv),
        resumed=_resumed(options, settings, runner.name),
    )


def _resumed(options: RunOptions, settings: Settings, sdk: str) -> Path | None:
    """The journal to go on from.

    Raises:
        UsageError: where that run asked something else.
    """
    if options.resume is None:
        return None
    journal = find_journal(options.output, options.resume)
    header = read_header(journal)
    if header.sdk != sdk or header.settings_sha256 != settings.digest():
        raise UsageError(
            f"{journal.parent} was run with other settings:"
            f" {_differences(header.sdk, header.settings, sdk, settings)}",
            code="resume_mismatch",
            hint="give the same flags, which its manifest.json has; if the daemon's build or the"
            " dataset has changed, start a new run",
        )
    return journal


def _differences(then_sdk: str, then: Settings, now_sdk: str, now: Settings) -> str:
    """`repeat was 3, is 1`, and whatever else differs."""
    before = {"sdk": then_sdk} | then.model_dump(mode="json")
    after = {"sdk": now_sdk} | now.model_dump(mode="json")
    return "; ".join(
        f"{name} was {str(before.get(name))[:_SHOWN]}, is {str(value)[:_SHOWN]}"
        for name, value in after.items()
        if before.get(name) != value
    )


_SHOWN = 60
"""Characters of a setting."""


def _require_claimed_mode(runner: SdkRunner, mode: Mode, options: RunOptions) -> None:
    needs_ask = SCENARIOS[options.scenario].text_kind == "answer"
    if needs_ask and Profile.ASK not in runner.profiles:
        raise UsageError(
            f"{runner.name} does not claim the profile ask, which {options.scenario} needs",
            code="profile_not_claimed",
            hint="use --scenario search-retrieve-only",
        )
    served = None if runner.modes is None else (*runner.modes, *runner.optional_modes)
    if served is not None and mode not in served and not options.allow_fallback:
        raise UsageError(
            f"{runner.name} does not claim mode {mode.value}",
            code="mode_not_claimed",
            hint=f"it claims {', '.join(served)}; or use --allow-fallback",
        )
