"""Which answers a person is shown, and what their verdicts say about the judge."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import eq
from pathlib import Path

from memconform.errors import ExitCode, NothingSelectedError, UsageError
from memconform.printing.plurals import plural
from memconform.replay.arbitration_records import Kappa, LmeArbitration, Only, Overruled
from memconform.replay.overrides import Overrides, with_overrides
from memconform.replay.records import LmeQuestion, LmeResult
from memconform.replay.stored_results import lme_scores
from memconform.scoring.accuracy import Estimate, estimate
from memconform.scoring.judge.records import ErrorRate
from memconform.stats.prevalence import rogan_gladen
from memconform.stats.raters import cohen_agreement


@dataclass(frozen=True, slots=True)
class ArbitrationChoice:
    """Which answers to show."""

    only: Only = "all"
    sample: int | None = None
    """So many of the answers with a verdict, drawn at random; takes the place of `only`."""
    seed: int = 42

    def __str__(self) -> str:
        return f"sample of {self.sample}, seed {self.seed}" if self.sample else self.only


def choose(result: LmeResult, choice: ArbitrationChoice) -> list[LmeQuestion]:
    """The questions whose answers are shown, in the order of the file or of the draw.

    A smaller sample is the beginning of a larger one of the same seed.

    Raises:
        UsageError: if the sample is larger than the number of judged answers (`bad_selection`).
        NothingSelectedError: if there is none (`nothing_selected`).
    """
    answered = [question for question in result.questions if question.answer is not None]
    judged = [question for question in answered if question.measured]
    match choice.only:
        case _ if choice.sample is not None:
            chosen = sorted(judged, key=lambda each: _draw(choice.seed, each.id))[: choice.sample]
        case "incorrect":
            chosen = [question for question in judged if not question.correct]
        case "disagreements":
            chosen = [question for question in judged if _is_disputed(question)]
        case _:
            chosen = answered
    if choice.sample is not None and choice.sample > len(judged):
        raise UsageError(
            f"a sample of {choice.sample} cannot be drawn from {plural(len(judged), 'answer')}"
            " with a verdict",
            code="bad_selection",
            hint=f"give --sample {len(judged)} or fewer" if judged else "judge the answers first",
        )
    if not chosen:
        raise NothingSelectedError(
            f"no answer to show: {choice}",
            code="nothing_selected",
            hint="--only all shows every answer; questions without an answer are never shown",
        )
    return chosen


def arbitrate(
    path: Path, result: LmeResult, overrides: Overrides, choice: ArbitrationChoice
) -> LmeArbitration:
    """Compare the judge with the person over the chosen answers, and correct the score.

    Raises:
        MemconformError: as `choose` does.
    """
    chosen = choose(result, choice)
    arbitrated = [question for question in chosen if question.id in overrides]
    compared = [question for question in arbitrated if question.measured]
    judge = [question.correct for question in compared]
    person = [overrides[question.id].verdict == "correct" for question in compared]
    is_census = choice.sample is None and choice.only == "all" and len(arbitrated) == len(chosen)
    # A part of it may be what somebody judged before, chosen by another rule.
    is_sample = choice.sample is not None and len(arbitrated) == len(chosen)
    representative = bool(compared) and (is_census or is_sample)
    rejects = [mine for mine, truth in zip(judge, person, strict=True) if truth]
    accepts = [mine for mine, truth in zip(judge, person, strict=True) if not truth]
    report = LmeArbitration(
        exit_code=ExitCode.OK,
        result=str(path),
        sdk=result.sdk,
        selection=str(choice),
        selected=len(chosen),
        arbitrated=len(arbitrated),
        by=sorted({overrides[question.id].by for question in arbitrated}),
        compared=len(compared),
        agreement=sum(map(eq, judge, person)) / len(judge) if judge else None,
        representative=representative,
        kappa=_kappa(judge, person) if representative else None,
        false_rejects=ErrorRate.of(rejects.count(False), len(rejects)) if representative else None,
        false_accepts=ErrorRate.of(accepts.count(True), len(accepts)) if representative else None,
        corrected=_corrected(result, rejects, accepts) if representative and is_sample else None,
        score=lme_scores(result.questions).overall,
        score_with_overrides=lme_scores(with_overrides(result, overrides).questions).overall,
        overruled=[
            Overruled(
                question=question.id,
                judge=question.judge_verdict,
                person=override.verdict,
                by=override.by,
                note=override.note,
            )
            for question in arbitrated
            if (override := overrides[question.id]).verdict != _verdict(question)
        ],
        notes=[],
    )
    return report.model_copy(update={"notes": list(_notes(report, choice, overrides))})


def _draw(seed: int, name: str) -> bytes:
    """A digest, because `random` may draw differently in other versions of Python."""
    return hashlib.sha256(f"{seed}\0{name}".encode()).digest()


def _is_disputed(question: LmeQuestion) -> bool:
    """Whether votes differ from each other, or the verdict from the exact match."""
    votes = {verdict for vote in question.votes for verdict in (vote.verdict, *vote.verdicts)}
    return len(votes - {None}) > 1 or question.exact_match not in (None, question.correct)


def _verdict(question: LmeQuestion) -> str | None:
    if not question.measured:
        return None
    return "correct" if question.correct else "incorrect"


def _kappa(judge: Sequence[bool], person: Sequence[bool]) -> Kappa | None:
    if len(set(judge)) < 2 or len(set(person)) < 2:
        # It is 0 whatever was judged, and no resampling would show otherwise.
        return None
    agreement = cohen_agreement(judge, person)
    if agreement is None:
        return None
    return Kappa(value=agreement.value, interval=agreement.interval)


def _corrected(
    result: LmeResult, of_right: Sequence[bool], of_wrong: Sequence[bool]
) -> Estimate | None:
    """The rate of right answers among the measured ones, without the judge's errors.

    The sample is part of the result, which the interval does not know: mostly it is too wide. It
    covers 96 % at least with samples of 100, 94 % with samples of 60, and 91 % with samples of 30,
    in runs of 100 to 500 answers (scripts/bench_judge_stats.py).
    """
    judged = [question.correct for question in result.questions if question.measured]
    rate = rogan_gladen(
        sum(judged),
        len(judged),
        sensitivity=(sum(of_right), len(of_right)),
        specificity=(of_wrong.count(False), len(of_wrong)),
    )
    return None if rate is None else estimate(rate.rate, rate.interval)


def _notes(
    report: LmeArbitration, choice: ArbitrationChoice, overrides: Overrides
) -> Iterator[str]:
    left = report.selected - report.arbitrated
    if left:
        yield f"{plural(left, 'answer')} of {report.selected} without a verdict of a person"
    if choice.sample is not None and left:
        yield "a sample judged in part gives no kappa, error rates or corrected score"
    elif choice.sample is None and not report.representative:
        yield (
            f"{choice.only} is no random sample of the answers: no kappa, error rates or corrected"
            " score for the whole; --sample N gives them"
        )
    if report.representative:
        yield "the person saw the judge's verdict before deciding, which makes agreement likelier"
    if report.representative and report.kappa is None:
        yield "kappa says nothing: judge or person gave one verdict throughout"
    if report.representative and choice.sample is not None and report.corrected is None:
        yield "no corrected score: in this sample the judge is not clearly better than chance"
    if report.corrected is not None and report.score.measured < report.score.expected:
        yield "the corrected score is of the measured answers alone"
    elsewhere = len(overrides) - report.arbitrated
    if elsewhere:
        yield f"{plural(elsewhere, 'verdict')} on answers outside the selection: in the score only"
