"""Two results of the replay, compared question by question."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from memconform.contract.wire import JsonValue
from memconform.errors import ExitCode, UsageError, gravest
from memconform.parity.paired_comparison import ALPHA, MARGIN, Counts, compare_pairs
from memconform.parity.records import PairedComparison, ParityVerdict
from memconform.printing.plurals import plural
from memconform.replay.records import LmeQuestion, LmeResult
from memconform.replay.review_records import Change, Flip, LmeReview, ReviewedResult, Unmeasured
from memconform.replay.stored import lme_scores

_PREVIEW = 200
_SAME = ("dataset_sha256", "questions")
"""Settings that are no change: the first must be equal, the second are named by id."""
_ABSENT = "-"


@dataclass(frozen=True, slots=True)
class ReviewSide:
    """A result, with a person's verdicts in place of the judge's where there are any."""

    path: Path
    result: LmeResult
    overridden: int = 0

    def record(self) -> ReviewedResult:
        result = self.result
        return ReviewedResult(
            path=str(self.path),
            sdk=result.sdk,
            version=result.version,
            started_at=f"{result.started_at:%Y-%m-%dT%H:%M}",
            questions=len(result.questions),
            measured=sum(question.measured for question in result.questions),
            accuracy=lme_scores(result.questions).overall,
            overridden=self.overridden,
            incident=result.incident,
        )


@dataclass(slots=True)
class _Tally:
    overall: Counts = field(default_factory=Counts)
    categories: dict[str, Counts] = field(default_factory=dict)
    regressions: list[Flip] = field(default_factory=list)
    fixes: list[Flip] = field(default_factory=list)
    not_measured: list[Unmeasured] = field(default_factory=list)

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
        if before.correct != after.correct:
            (self.regressions if before.correct else self.fixes).append(_flip(before, after))

    def leave_out(self, unpaired: LmeQuestion) -> None:
        """Results are not identical if one has a question that the other does not have."""
        self.overall.same = False
        if counts := self.categories.get(unpaired.category):
            counts.same = False


def review(before: ReviewSide, after: ReviewSide) -> LmeReview:
    """Report what changed from one result to another.

    Only questions that both measured are compared. The exit code is FAILED if the second result
    is significantly worse over all of them; a category alone never decides it.

    Raises:
        UsageError: if the results are of other data, or judged by another rubric (`unlike_runs`).
    """
    _require_comparable(before, after)
    earlier, later = (
        {question.id: question for question in side.result.questions} for side in (before, after)
    )
    tally = _Tally()
    for name, question in earlier.items():
        if name in later:
            _require_same_question(question, later[name])
            tally.add(question, later[name])
    only_before = [name for name in earlier if name not in later]
    only_after = [name for name in later if name not in earlier]
    for unpaired in (*(earlier[name] for name in only_before), *(later[n] for n in only_after)):
        tally.leave_out(unpaired)
    [overall] = compare_pairs([tally.overall])
    names = sorted(tally.categories)
    comparisons = compare_pairs([tally.categories[name] for name in names])
    report = LmeReview(
        exit_code=ExitCode.OK,
        reasons=[],
        before=before.record(),
        after=after.record(),
        changes=list(_changes(before.result, after.result)),
        margin=MARGIN,
        alpha=ALPHA,
        overall=overall,
        by_category=dict(zip(names, comparisons, strict=True)),
        regressions=tally.regressions,
        fixes=tally.fixes,
        not_measured=tally.not_measured,
        only_before=only_before,
        only_after=only_after,
    )
    code = gravest(_codes(report))
    return report.model_copy(update={"exit_code": code, "reasons": list(_reasons(report))})


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


def _require_comparable(before: ReviewSide, after: ReviewSide) -> None:
    one, other = before.result.settings, after.result.settings
    if one.dataset_sha256 != other.dataset_sha256:
        raise _unlike(
            f"{before.path} and {after.path} are of different data:"
            f" {one.dataset_sha256[:12]} and {other.dataset_sha256[:12]}"
        )
    rubrics = [
        "exact match" if each.judge is None else f"rubric {each.judge.prompt}"
        for each in (one, other)
    ]
    if rubrics[0] != rubrics[1]:
        raise _unlike(
            f"{before.path} and {after.path} are judged by {rubrics[0]} and by {rubrics[1]}"
        )


def _require_same_question(one: LmeQuestion, other: LmeQuestion) -> None:
    for name in (
        *("question", "question_date", "reference_answers", "category", "abstention"),
        "answer_session_ids",
    ):
        if getattr(one, name) != getattr(other, name):
            raise _unlike(f"{name} of question {one.id!r} differs")


def _unlike(message: str) -> UsageError:
    return UsageError(
        message,
        code="unlike_runs",
        hint="compare results of one benchmark file, judged by one rubric; the reader, the judge's"
        " model, the retrieval, the brain and the daemon may differ",
    )


def _changes(before: LmeResult, after: LmeResult) -> Iterator[Change]:
    for name in ("sdk", "version", "build_hash", "harness_version"):
        yield from _change(name, getattr(before, name), getattr(after, name))
    one, other = (each.settings.model_dump(mode="json") for each in (before, after))
    for name in dict.fromkeys((*one, *other)):
        if name not in _SAME:
            yield from _change(name, one.get(name), other.get(name))


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
