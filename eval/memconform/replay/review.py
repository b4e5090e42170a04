"""Two results of the replay, compared question by question."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from pathlib import Path

from memconform.contract.wire import JsonValue
from memconform.errors import ExitCode, UsageError, gravest
from memconform.printing.plurals import plural
from memconform.records import Incident
from memconform.replay.jeffs_brain_results import RUNNER, JeffsBrainResult
from memconform.replay.records import LmeQuestion, LmeResult
from memconform.replay.review_records import Change, Flip, LmeReview, ReviewedResult, Unmeasured
from memconform.replay.stored_results import lme_scores
from memconform.stats.intervals import LEAST_CLUSTERS
from memconform.stats.latency_ratio import latency_ratio
from memconform.stats.paired_comparison import (
    ALPHA,
    MARGIN,
    Counts,
    PairedComparison,
    ParityVerdict,
    compare_pairs,
)

_PREVIEW = 200
_SAME = ("dataset_sha256", "questions")
"""Settings that are no change: the first must be equal, the second are named by id."""
_ABSENT = "-"
_UNKNOWN = "an unknown time"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewSide:
    """A result, with a person's verdicts in place of the judge's where there are any."""

    path: Path
    sdk: str
    version: str | None = None
    started_at: str
    dataset_sha: str
    rubric: str
    """By what answers were judged."""
    about: Mapping[str, JsonValue]
    """SDK, build and settings: what may differ."""
    questions: Sequence[LmeQuestion]
    overridden: int = 0
    incident: Incident | None = None
    timed: str = ""
    """The endpoint whose calls have the latencies; empty if they contain each other, as those of
    an agent do, or are unknown."""
    is_foreign: bool = False
    """Whether another runner wrote it, which leaves settings and gold sessions unknown."""

    @classmethod
    def of(cls, path: Path, result: LmeResult, overridden: int = 0) -> "ReviewSide":
        """The side of a result of ours."""
        names = ("sdk", "version", "build_hash", "harness_version")
        settings = result.settings
        return cls(
            path=path,
            sdk=result.sdk,
            version=result.version,
            started_at=f"{result.started_at:%Y-%m-%dT%H:%M}",
            dataset_sha=settings.dataset_sha256,
            rubric="exact match" if settings.judge is None else f"rubric {settings.judge.prompt}",
            about={name: getattr(result, name) for name in names}
            | settings.model_dump(mode="json", exclude=set(_SAME)),
            questions=result.questions,
            overridden=overridden,
            incident=result.incident,
            timed="" if settings.agentic else settings.endpoint_style,
        )

    @classmethod
    def of_jeffs_brain(cls, path: Path, result: JeffsBrainResult) -> "ReviewSide":
        """The side of a result of the runner of jeffs-brain/memory."""
        return cls(
            path=path,
            sdk=result.sdk,
            started_at=_UNKNOWN,
            dataset_sha=result.dataset_sha,
            rubric=result.rubric,
            about={"sdk": result.sdk, "harness_version": RUNNER, **result.settings},
            questions=result.questions,
            overridden=result.overridden,
            is_foreign=True,
        )

    def record(self) -> ReviewedResult:
        return ReviewedResult(
            path=str(self.path),
            sdk=self.sdk,
            version=self.version,
            started_at=self.started_at,
            questions=len(self.questions),
            measured=sum(question.measured for question in self.questions),
            accuracy=lme_scores(self.questions).overall,
            overridden=self.overridden,
            incident=self.incident,
        )


@dataclass(slots=True)
class _Tally:
    overall: Counts = field(default_factory=Counts)
    categories: dict[str, Counts] = field(default_factory=dict)
    regressions: list[Flip] = field(default_factory=list)
    fixes: list[Flip] = field(default_factory=list)
    not_measured: list[Unmeasured] = field(default_factory=list)
    log_ratios: list[float] = field(default_factory=list)

    def add(self, before: LmeQuestion, after: LmeQuestion) -> None:
        scopes = (self.overall, self.categories.setdefault(before.category, Counts()))
        is_measured = before.measured and after.measured
        is_same = is_measured and _outcome(before) == _outcome(after)
        for counts in scopes:
            counts.same = counts.same and is_same
        if not is_measured:
            missing = Unmeasured(question=before.id, before=_why(before), after=_why(after))
            self.not_measured.append(missing)
            return
        for counts in scopes:
            counts.add(
                first=before.correct, second=after.correct, cluster=before.cluster or after.cluster
            )
        if before.retrieval_ms and after.retrieval_ms:
            self.log_ratios.append(log(after.retrieval_ms / before.retrieval_ms))
        if before.correct != after.correct:
            (self.regressions if before.correct else self.fixes).append(_flip(before, after))

    def leave_out(self, unpaired: LmeQuestion) -> None:
        """Results are not identical if one has a question that the other does not have."""
        self.overall.same = False
        if counts := self.categories.get(unpaired.category):
            counts.same = False


def review(
    before: ReviewSide, after: ReviewSide, *, across_rubrics: bool = False, seed: int = 0
) -> LmeReview:
    """Report what changed from one result to another; `seed` is that of the resampling.

    Only questions that both measured are compared. The exit code is FAILED if the second result
    is significantly worse over all of them; a category alone never decides it.

    Raises:
        UsageError: if the results are of other data, or judged by another rubric, unless that is
            allowed (`unlike_runs`).
    """
    _require_comparable(before, after, across_rubrics=across_rubrics)
    earlier, later = (
        {question.id: question for question in side.questions} for side in (before, after)
    )
    tally = _Tally()
    knows_gold = not (before.is_foreign or after.is_foreign)
    for name, question in earlier.items():
        if name in later:
            _require_same_question(question, later[name], knows_gold=knows_gold)
            tally.add(question, later[name])
    only_before = [name for name in earlier if name not in later]
    only_after = [name for name in later if name not in earlier]
    for unpaired in (*(earlier[name] for name in only_before), *(later[n] for n in only_after)):
        tally.leave_out(unpaired)
    [overall] = compare_pairs([tally.overall])
    names = sorted(tally.categories)
    is_timed = bool(before.timed) and before.timed == after.timed
    comparisons = compare_pairs([tally.categories[name] for name in names])
    report = LmeReview(
        exit_code=ExitCode.OK,
        reasons=[],
        before=before.record(),
        after=after.record(),
        changes=list(_changes(before, after)),
        margin=MARGIN,
        alpha=ALPHA,
        overall=overall,
        by_category=dict(zip(names, comparisons, strict=True)),
        latency=latency_ratio(tally.log_ratios, seed)
        if is_timed and len(tally.log_ratios) >= LEAST_CLUSTERS
        else None,
        regressions=tally.regressions,
        fixes=tally.fixes,
        not_measured=tally.not_measured,
        only_before=only_before,
        only_after=only_after,
    )
    code = gravest(_codes(report))
    reasons = [*_rubric_reasons(before, after), *_reasons(report)]
    return report.model_copy(update={"exit_code": code, "reasons": reasons})


def is_drop(comparison: PairedComparison) -> bool:
    """Whether the second result is significantly worse."""
    return comparison.verdict is ParityVerdict.DRIFT and comparison.difference.value > 0


def _codes(report: LmeReview) -> Iterator[ExitCode]:
    sides = (report.before, report.after)
    if any(side.incident or side.measured < side.questions for side in sides):
        yield ExitCode.DAEMON
    if report.overall.compared == 0:
        yield ExitCode.NOTHING_SELECTED
    if is_drop(report.overall):
        yield ExitCode.FAILED


def _reasons(report: LmeReview) -> Iterator[str]:
    for name, side in (("before", report.before), ("after", report.after)):
        if side.incident is not None:
            yield f"{name}: {side.incident.code}: {side.incident.message}"
        if missing := side.questions - side.measured:
            yield (
                f"{name}: {plural(missing, 'question')} of {side.questions} not measured, and not"
                " compared"
            )
        if side.overridden:
            yield f"{name}: {plural(side.overridden, 'verdict')} by a person"
    if bool(report.before.overridden) != bool(report.after.overridden):
        yield "people overruled the judge of one result only, which may be all that changed"
    if same := sum(flip.same_answer for flip in (*report.regressions, *report.fixes)):
        yield f"{plural(same, 'flip')} with the same answer: only the verdict changed"
    for name, comparison in report.by_category.items():
        if is_drop(comparison) and not is_drop(report.overall):
            yield f"{name} is significantly worse, all questions together are not"


def _require_comparable(before: ReviewSide, after: ReviewSide, *, across_rubrics: bool) -> None:
    if before.dataset_sha != after.dataset_sha:
        raise _unlike(
            f"{before.path} and {after.path} are of different data:"
            f" {before.dataset_sha[:12]} and {after.dataset_sha[:12]}"
        )
    if before.rubric != after.rubric and not across_rubrics:
        raise _unlike(
            f"{before.path} and {after.path} are judged by {before.rubric} and by {after.rubric}",
            "; with --across-rubrics, the rubrics as well",
        )


def _rubric_reasons(before: ReviewSide, after: ReviewSide) -> Iterator[str]:
    if before.rubric != after.rubric:
        yield (
            f"judged by {before.rubric} before and by {after.rubric} after: what differs may be the"
            " judges alone"
        )


def _require_same_question(one: LmeQuestion, other: LmeQuestion, *, knows_gold: bool) -> None:
    names = ["question", "question_date", "reference_answers", "category", "abstention"]
    for name in (*names, "answer_session_ids") if knows_gold else names:
        if getattr(one, name) != getattr(other, name):
            raise _unlike(f"{name} of question {one.id!r} differs")


def _unlike(message: str, more: str = "") -> UsageError:
    return UsageError(
        message,
        code="unlike_runs",
        hint="compare results of one benchmark file, judged by one rubric; the reader, the judge's"
        f" model, the retrieval, the brain and the daemon may differ{more}",
    )


def _changes(before: ReviewSide, after: ReviewSide) -> Iterator[Change]:
    one, other = before.about, after.about
    if before.is_foreign or after.is_foreign:
        one, other = _both_known(one, other)
    for name in dict.fromkeys((*one, *other)):
        yield from _change(name, one.get(name), other.get(name))


def _both_known(
    one: Mapping[str, JsonValue], other: Mapping[str, JsonValue]
) -> tuple[dict[str, JsonValue], dict[str, JsonValue]]:
    """What both sides say: a setting that one does not know is no difference."""
    pairs = {name: (one[name], other[name]) for name in one if name in other}
    known: tuple[dict[str, JsonValue], dict[str, JsonValue]] = ({}, {})
    for name, (first, second) in pairs.items():
        if isinstance(first, dict) and isinstance(second, dict):
            known[0][name], known[1][name] = _both_known(first, second)
        else:
            known[0][name], known[1][name] = _model_of(first), _model_of(second)
    return known


def _model_of(value: JsonValue) -> JsonValue:
    """The name in place of a model's or a judge's settings: another runner says no more."""
    match value:
        case {"model": str(name)}:
            return name
        case {"models": list(models)}:
            return ", ".join(str(_model_of(model)) for model in models)
        case _:
            return value


def _change(name: str, before: JsonValue, after: JsonValue) -> Iterator[Change]:
    if _is_table(before) and _is_table(after):
        before, after = (_numbered(value) for value in (before, after))
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys((*before, *after)):
            yield from _change(f"{name}.{key}", before.get(key), after.get(key))
    elif before != after:
        yield Change(name=name, before=_value(before), after=_value(after))


def _is_table(value: JsonValue) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def _numbered(value: JsonValue) -> JsonValue:
    return {str(n): each for n, each in enumerate(value, 1)} if isinstance(value, list) else value


def _value(value: JsonValue) -> str:
    if isinstance(value, Mapping) and "model" in value:
        return str(value["model"])
    return _ABSENT if value is None else str(value)


def _flip(before: LmeQuestion, after: LmeQuestion) -> Flip:
    return Flip(
        question=before.id,
        category=before.category,
        before=before.judge_verdict,
        after=after.judge_verdict,
        answer_before=_preview(before),
        answer_after=_preview(after),
        same_answer=before.answer == after.answer,
        gold_rank_before=before.first_gold_rank,
        gold_rank_after=after.first_gold_rank,
    )


def _outcome(question: LmeQuestion) -> tuple[str | None, bool]:
    return question.answer, question.correct


def _preview(question: LmeQuestion) -> str:
    return (question.answer or "")[:_PREVIEW]


def _why(question: LmeQuestion) -> str:
    return "" if question.measured else question.code or question.judge_verdict
