"""From the flags of `lme` to questions, sessions and settings."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_args

from memconform.cli.lme.options import LmeOptions
from memconform.cli.values import comma_separated
from memconform.contract.wire import Mode
from memconform.daemons.kinds import UpstreamKind
from memconform.daemons.sdk_runner import SdkRunner
from memconform.datasets.answer_keys import read_answer_key
from memconform.datasets.files import PieceReader, unfit
from memconform.datasets.longmemeval import read_longmemeval_conversations
from memconform.datasets.question import Question
from memconform.datasets.sampling import QuerySelection, jeffs_brain_sample, select_queries
from memconform.datasets.selection import expect_known
from memconform.datasets.sharding import Shard, ShardRecord
from memconform.datasets.sources import find_data
from memconform.errors import NothingSelectedError, UsageError
from memconform.replay.documents import SESSIONS, SharedBrain
from memconform.replay.placement import has_prefixes
from memconform.replay.plan import ReplayControl
from memconform.replay.records import BenchmarkMode, ReplayRetrievalSettings
from memconform.replay.shared_brain import BrainFile
from memconform.scoring.judge.rubrics import OWN_RUBRICS

_SHORTEST_SHA = 8
_SCOPE_NAMES = {"global_memory": "global", "project_memory": "project"}
_SCOPE_FOLDERS = {
    "memory": "memory/",
    "raw_lme": SESSIONS,
}
"""Folders of scopes of jeffs-brain/memory that the contract lacks."""
_EMPTY_SCOPES = ("raw_document", "wiki", "sources")
"""Scopes of jeffs-brain/memory in which a replay stores nothing."""


@dataclass(frozen=True, slots=True)
class ReplayData:
    """The selected questions of a file, with their sessions."""

    sha256: str
    questions: tuple[Question, ...]
    """In the order in which they are asked."""
    shard: ShardRecord | None
    """Which part of the selected questions these are; None for all."""
    sessions: SharedBrain
    """Of all selected questions: the shards have one brain."""
    is_oracle: bool
    """Whether every session of every question holds evidence."""


def read_data(options: LmeOptions) -> ReplayData:
    """Read the file, and select questions.

    Raises:
        UsageError: if the file is not LongMemEval's or another than expected (`other_dataset`),
            does not have a question that the ids file names (`unknown_question`), or has fewer
            selected ones than there are shards (`too_many_shards`).
        NothingSelectedError: if the ids file is empty (`nothing_selected`).
    """
    path = find_data(options.dataset)
    key = read_answer_key(path, "longmemeval")
    _require_expected(path, key.sha256, options.expected_sha)
    chosen = _chosen(options, key.questions)
    for question in chosen:
        OWN_RUBRICS["longmemeval"].require_scorable(question)
    wanted = {question.id for question in chosen}
    sessions = SharedBrain()
    with PieceReader(path) as source:
        for conversation in read_longmemeval_conversations(source):
            if conversation.id in wanted:
                sessions.add(conversation)
        if source.sha256 != key.sha256:
            raise UsageError(
                f"{path} changed while it was read",
                code="dataset_changed",
                hint="run the command again once nobody writes to it",
            )
    by_path = sessions.sessions
    for question in chosen:
        own = {by_path[place].session.id for place in sessions.paths[question.id]}
        if lost := [session for session in question.gold if session not in own]:
            # No SDK could retrieve it, and all would seem to miss it.
            raise unfit(path, f"{question.id}: no session is the one with the answer, {lost[0]}")
    is_oracle = all(
        by_path[place].session.id in question.gold
        for question in chosen
        for place in sessions.paths[question.id]
    )
    asked, shard = tuple(chosen), None
    if options.shard is not None:
        part = Shard.parse(options.shard)
        places = part.places([question.id for question in chosen], "question")
        asked, shard = tuple(chosen[place] for place in places), part.record("question", places)
    return ReplayData(key.sha256, asked, shard, sessions, is_oracle)


def _require_expected(path: Path, sha256: str, expected: str | None) -> None:
    if expected is None:
        return
    if len(expected) < _SHORTEST_SHA or not sha256.startswith(expected.lower()):
        raise UsageError(
            f"{path} has the SHA-256 {sha256}, not {expected}",
            code="other_dataset",
            hint="give the file that was meant as --data, or at least 8 digits of its SHA-256",
        )


def _chosen(options: LmeOptions, questions: Mapping[str, Question]) -> list[Question]:
    """The questions of the sample, or those of the ids file, that have one of the categories."""
    categories = {name: question.category for name, question in questions.items()}
    wanted = tuple(name.strip() for name in comma_separated(options.categories))
    # Before the sample: what is drawn with a seed depends on nothing else.
    of_type = select_queries(categories, QuerySelection(categories=wanted))
    chosen = [questions[name] for name in _sampled(options, categories) if name in of_type]
    if not chosen:
        raise NothingSelectedError(
            f"none of the selected questions is of {', '.join(wanted)}",
            code="nothing_selected",
            hint="draw a larger sample, or name more of --categories",
        )
    return chosen


def _sampled(options: LmeOptions, categories: Mapping[str, str]) -> Iterable[str]:
    """Ids in the order in which the questions are asked."""
    if options.sample_ids_file is not None:
        ids = _ids(options.sample_ids_file)
        expect_known(
            ids,
            categories,
            f"{options.sample_ids_file}: the dataset has no question",
            "use ids of the dataset",
        )
        return ids
    size = options.sample_size or None
    if options.sampler == "jeffs-brain" and size is not None:
        return jeffs_brain_sample(categories, size, options.seed)
    selected = select_queries(categories, QuerySelection(sample=size, seed=options.seed))
    return [name for name in categories if name in selected]


def _ids(path: Path) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path} cannot be read: {error}",
            code="ids_unreadable",
            hint="give a file with the id of a question on each line",
        ) from error
    ids = [line.strip() for line in lines if line.strip()]
    if not ids:
        raise NothingSelectedError(
            f"{path} names no question", code="nothing_selected", hint="write an id on each line"
        )
    for name in ids:
        if ids.count(name) > 1:
            raise UsageError(
                f"{path} names {name} twice", code="question_twice", hint="name each question once"
            )
    return ids


def benchmark_modes(
    options: LmeOptions, data: ReplayData, *, tri: bool
) -> list[ReplayControl | None]:
    """The controls to run, and None for retrieval by daemons.

    Raises:
        UsageError: for modes that do not exist, or do not match the data (`bad_mode`).
    """
    names = [name.strip() for name in comma_separated(options.benchmark_mode)]
    if tri or not names:
        return [None]
    expect_known(
        names,
        get_args(BenchmarkMode),
        "there is no benchmark mode",
        f"use {', '.join(get_args(BenchmarkMode))}",
        code="bad_mode",
    )
    if data.is_oracle and "full-context" in names:
        raise UsageError(
            "the dataset has no session without evidence, so that full-context is the same as"
            " oracle",
            code="bad_mode",
            hint="give LongMemEval's file S or M, or --benchmark-mode oracle",
        )
    if "real-retrieval" not in names and options.sdk:
        raise UsageError(
            f"--benchmark-mode {','.join(names)} asks no daemon, but {options.sdk[0]} is given",
            code="bad_mode",
            hint="omit --sdk and --actor-endpoint, or --benchmark-mode: without it the daemon is"
            " asked, whatever the dataset",
        )
    return [
        None if name == "real-retrieval" else cast("ReplayControl", name)
        for name in dict.fromkeys(names)
    ]


def retrieval_settings(options: LmeOptions) -> ReplayRetrievalSettings:
    """What every daemon is asked for; whether sessions are filtered is not known yet.

    Raises:
        UsageError: for filters by which nothing is found (`filters_exclude_all`).
    """
    scope, path_prefix = _folders(options)
    return ReplayRetrievalSettings(
        mode=Mode(options.retrieval_mode or Mode.HYBRID_RERANK),
        top_k=options.actor_topk,
        candidate_k=options.actor_candidatek or None,
        rerank_top_n=options.actor_rerank_topn or None,
        scope=scope,
        # The agent's tools search folders, one of which is the project's.
        project=None if options.ingest_mode == "agentic" else options.actor_project or None,
        path_prefix=path_prefix,
        session_filter=False,
    )


def _folders(options: LmeOptions) -> tuple[str | None, str | None]:
    """The contract's scope, and the prefix of paths, for `--actor-scope` and its prefix.

    The contract has no scope for both folders of facts, or for one folder below raw/; their prefix
    says the same.
    """
    scope, prefix = options.actor_scope or None, options.actor_path_prefix or None
    if scope in _EMPTY_SCOPES:
        raise _exclude_all(f"--actor-scope {scope}", "documents", excludes="excludes")
    scope = _SCOPE_NAMES.get(scope or "", scope)
    if (folder := _SCOPE_FOLDERS.get(scope or "")) is None:
        return scope, prefix
    if not (prefix or "").startswith(folder) and not folder.startswith(prefix or ""):
        raise _exclude_all(f"--actor-scope {scope} and --actor-path-prefix {prefix}", "documents")
    return None, max(folder, prefix or "", key=len)


def _exclude_all(
    filters: str, what: str, project: str = "NAME", excludes: str = "exclude"
) -> UsageError:
    return UsageError(
        f"{filters} {excludes} all {what} of the brain",
        code="filters_exclude_all",
        hint="sessions are raw/lme/…; facts, which --ingest-mode bulk does not make, are"
        f" memory/project/{project}/…",
    )


def require_searchable(brain: BrainFile, settings: ReplayRetrievalSettings) -> None:
    """Raise UsageError (`filters_exclude_all`) if the filters exclude every document.

    No answer could be found then, by any SDK.
    """
    if not any(
        has_prefixes(
            document.path,
            path_prefix=settings.path_prefix,
            scope=settings.scope,
            project=settings.project,
        )
        for document in brain.documents()
    ):
        raise _exclude_all(
            "--actor-scope, --actor-project and --actor-path-prefix",
            f"{brain.size} documents",
            brain.record.key.project,
        )


def upstream_of(options: LmeOptions, runner: SdkRunner) -> UpstreamKind:
    """What answers a daemon's model calls; one that runs already has its own."""
    return options.upstream or ("scripted" if runner.managed else "own")
