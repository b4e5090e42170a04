"""What a result says of its judges."""

import pytest

from memconform.llm.records import ModelSettings
from memconform.scoring.judge.calibration import Calibration
from memconform.scoring.judge.records import JudgeSettings, JudgeVote
from memconform.scoring.judge.tally import JudgingTally
from memconform.scoring.statuses import QuestionStatus
from memconform.stats.prevalence import rogan_gladen
from tests.unit.scoring.test_judge import calibration, vote

_MODELS = ("openai:m", "anthropic:n", "fake:lexical-1")


def _settings(*models: str) -> JudgeSettings:
    return JudgeSettings(models=[ModelSettings(model=m, sampling={}) for m in models], prompt="abc")


def _tally(
    *models: str, known: Calibration | None = None, reader: str | None = None
) -> JudgingTally:
    return JudgingTally(_settings(*models), {models[0]: known} if known else {}, reader)


def _add(tally: JudgingTally, *votes: JudgeVote, passed: bool = False) -> None:
    tally.add(votes, [QuestionStatus.CORRECT if passed else QuestionStatus.INCORRECT])


def test_tokens_dollars_and_failures_are_summed_by_judge() -> None:
    tally = _tally(*_MODELS[:2])
    for verdict in ("correct", None):
        _add(tally, vote(verdict, model=_MODELS[0]), vote("correct", model=_MODELS[1]))
    first, second = tally.summary(void=False).judges
    assert (first.verdicts, first.failed, first.input_tokens) == (1, 1, 2)
    assert (second.verdicts, second.failed) == (2, 0)


def test_an_answer_that_a_judge_failed_on_is_in_no_kappa_but_in_alpha() -> None:
    tally = _tally(*_MODELS)
    rows = (("correct",) * 3, ("incorrect",) * 3, ("correct", "correct", None))
    for row in rows:
        _add(tally, *(vote(v, model=m) for v, m in zip(row, _MODELS, strict=True)))
    agreement = tally.summary(void=False).agreement
    assert agreement is not None
    assert (agreement.answers, agreement.fleiss_kappa) == (3, 1.0)
    assert agreement.krippendorff_alpha == 1.0


def test_one_judge_has_no_agreement() -> None:
    tally = _tally(_MODELS[0])
    _add(tally, vote("correct", model=_MODELS[0]))
    assert tally.summary(void=False).agreement is None


def test_the_corrected_rate_leaves_settled_answers_as_they_are() -> None:
    known = calibration(right=10, specific_wrong=4)
    tally = _tally("fake:lexical-1", known=known)
    for number in range(80):
        _add(tally, vote("correct" if number < 40 else "incorrect", model="fake:lexical-1"))
    for number in range(20):
        _add(tally, passed=number < 20)
    [specific, vague] = tally.summary(void=False).corrected
    alone = rogan_gladen(40, 80, sensitivity=(90, 100), specificity=(96, 100))
    assert alone is not None
    assert specific.rate == pytest.approx((80 * alone.rate + 20) / 100)
    assert vague.rate != specific.rate
    assert specific.interval[0] < specific.rate < specific.interval[1]


def test_a_judge_of_the_readers_vendor_and_an_uncalibrated_one_are_pointed_out() -> None:
    tally = _tally("openai:m", reader="openai")
    _add(tally, vote("correct", model="openai:m"))
    notes = " ".join(tally.summary(void=False).notes)
    assert "own vendor" in notes
    assert "never calibrated" in notes
    assert "served by" not in notes
    other = _tally("openai:m", reader="anthropic")
    assert "own vendor" not in " ".join(other.summary(void=False).notes)


def test_a_model_that_was_served_by_another_is_pointed_out() -> None:
    tally = _tally("openai:m")
    served = vote("correct", model="openai:m").model_copy(update={"served_model": "m-mini"})
    _add(tally, served)
    assert "openai:m was served by m-mini" in tally.summary(void=False).notes


def test_a_run_without_a_pass_rate_has_no_corrected_one() -> None:
    tally = _tally("fake:lexical-1", known=calibration())
    _add(tally, vote("correct", model="fake:lexical-1"))
    assert tally.summary(void=False).corrected
    assert tally.summary(void=True).corrected == []


def test_attempts_that_needed_no_judge_are_counted_beside_judged_ones() -> None:
    tally = _tally("fake:lexical-1")
    tally.add(
        [vote("correct", model="fake:lexical-1")],
        [QuestionStatus.CORRECT, QuestionStatus.ABSTAINED, QuestionStatus.JUDGE_ERROR],
    )
    summary = tally.summary(void=False)
    assert (summary.judged, summary.settled) == (1, 1)
