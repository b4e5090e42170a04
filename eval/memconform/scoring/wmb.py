"""WMB-100K's score, by the rules of its README and by what its script computes.

Both are of version 2.1: `README.md` and `scripts/score.py` of the benchmark's repository. They
differ, so that one number means nothing without the name of its profile. Penalties and scores are
in points; a system gets at most 100.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from memconform.datasets.question import Question
from memconform.datasets.wmb import is_document
from memconform.datasets.wmb_names import FALSE_MEMORY
from memconform.records import Record
from memconform.scoring.wmb_rows import ScoredAnswers, ScoredRow
from memconform.stats.quantiles import QuantileSummary

Profile = Literal["readme", "script"]
PROFILES: Final[tuple[Profile, ...]] = ("readme", "script")

SCORED: Final = "S1Situational"
TYPES: Final = (
    *(SCORED, "S2MultiMemory", "S3CrossCategory", "S4Temporal", "S5Adversarial"),
    *("S6Contradiction", "S7ReasoningChain", FALSE_MEMORY),
)
"""The types of questions, in the order in which the script prints them."""

SCRIPT_CHARACTERS: Final = 3_000
"""The script shows its judge this much of the memories, and drops the rest without a notice."""

_PENALTY: Final = 0.25
_SLOWEST: Final = 0.1
_GRADES: Final = (
    *((90, "Exceptional"), (80, "Excellent"), (70, "Good"), (60, "Fair")),
    (50, "Below Average"),
)


class Range(Record):
    """A figure, or its bounds if some of what it is made of was not measured."""

    value: float | None
    """Null unless everything was measured."""
    low: float
    high: float

    @classmethod
    def of(cls, low: float, high: float) -> "Range":
        return cls(value=low if low == high else None, low=low, high=high)


class WmbAccuracy(Record):
    """How many questions were answered right."""

    total: int
    """The denominator of this profile."""
    correct: int
    unmeasured: int
    """Questions of the denominator without a verdict."""
    percent: Range | None
    """Null without questions."""


class FalseMemory(Record):
    """Probes about things that were never said, for which nothing should be returned."""

    probes: int
    false_positives: int
    unmeasured: int
    penalty: Range


class Speed(Record):
    """What latency costs; milliseconds and points."""

    answers: int
    """Rows that pay for their latency."""
    unmeasured: int
    """Those without a latency, which may cost anything from 0 to 0.1 points."""
    penalty: Range
    p50: float | None
    p95: float | None


class ProfileScore(Record):
    """The score by one of the two sets of rules."""

    profile: Profile
    score: Range | None
    """Null without a question that counts."""
    grade: str | None
    """Null if the bounds have different grades; the script gives none."""
    part_b: WmbAccuracy
    part_a: WmbAccuracy | None
    """Reported apart; null if the system was not asked about documents."""
    false_memory: FalseMemory
    speed: Speed
    by_type: dict[str, WmbAccuracy]
    """Covers the conversations (readme), or both parts together (script)."""

    def counts(self) -> tuple[int, int, int]:
        """Expected, measured and correct questions.

        The denominators are fixed: by the README, a question that was not asked is expected, and
        not measured. The script knows only what the file has, and what was lost.
        """
        parts = list(self.by_type.values())
        if self.profile == "readme" and self.part_a is not None:
            parts.append(self.part_a)
        expected = sum(part.total for part in parts)
        unmeasured = sum(part.unmeasured for part in parts)
        return expected, expected - unmeasured, sum(part.correct for part in parts)


def score_answers(answers: ScoredAnswers, profile: Profile) -> ProfileScore:
    """The score by one profile."""
    return _readme(answers) if profile == "readme" else _script(answers)


def speed_penalty(latency_ms: float, profile: Profile) -> float:
    """What an answer of this latency costs, in points.

    The README's tiers begin at 300, 500 and 1,000 ms; those of the script begin after them.
    """
    tiers = ((1_000, _SLOWEST), (500, 0.05), (300, 0.01))
    for limit, points in tiers:
        if latency_ms > limit or (profile == "readme" and latency_ms == limit):
            return points
    return 0.0


def grade(score: float) -> str:
    """The README's grade of a score."""
    return next((name for least, name in _GRADES if score >= least), "Failing")


@dataclass(slots=True)
class _Tally:
    """Counts of one group of questions."""

    correct: int = 0
    wrong: int = 0
    unmeasured: int = 0

    def add(self, outcome: bool | None) -> None:  # noqa: FBT001 - right, wrong or neither
        if outcome is None:
            self.unmeasured += 1
        elif outcome:
            self.correct += 1
        else:
            self.wrong += 1

    @property
    def total(self) -> int:
        return self.correct + self.wrong + self.unmeasured

    def accuracy(self) -> WmbAccuracy:
        percent = None
        if self.total:
            # In the order of the script, so that the last digit is the same.
            low, high = (
                n / self.total * 100 for n in (self.correct, self.correct + self.unmeasured)
            )
            percent = Range.of(low, high)
        return WmbAccuracy(
            total=self.total, correct=self.correct, unmeasured=self.unmeasured, percent=percent
        )


def readme_outcomes(answers: ScoredAnswers) -> dict[str, bool | None]:
    """Whether each question that the README counts is right, by id; None if it was not measured.

    A question without a row is wrong, unless it was lost or not asked. An error message in place of
    an answer is neither right nor wrong.
    """
    counted = answers.counted
    unmeasured = {*answers.lost, *answers.not_asked} - counted.keys()
    asked_documents = any(is_document(name) for name in (*counted, *answers.lost))

    def outcome(question: Question) -> bool | None:
        row = counted.get(question.id)
        if row is None:
            return None if question.id in unmeasured else False
        if row.error is not None:
            return None
        if question.category == FALSE_MEMORY:
            return row.returned_nothing
        return _verdict(answers, row, row.whole)

    return {
        question.id: outcome(question)
        for question in answers.questions.values()
        if not is_document(question.id) or (asked_documents and question.category == SCORED)
    }


def _readme(answers: ScoredAnswers) -> ProfileScore:
    """Fixed denominators, by `readme_outcomes`."""
    counted = answers.counted
    unmeasured = {*answers.lost, *answers.not_asked} - counted.keys()
    by_type: dict[str, _Tally] = {}
    documents = _Tally()
    paying = []
    for name, outcome in readme_outcomes(answers).items():
        category = answers.questions[name].category
        if is_document(name):
            documents.add(outcome)
            continue
        by_type.setdefault(category, _Tally()).add(outcome)
        if category in (SCORED, FALSE_MEMORY):
            paying.append(name)
    latencies = [
        # How fast a call failed is not how fast an answer was.
        counted[name].latency_ms if name in counted and counted[name].error is None else None
        for name in paying
        if name in counted or name in unmeasured
    ]
    part_b = by_type.get(SCORED, _Tally()).accuracy()
    return _profile(
        "readme",
        (documents.accuracy() if documents.total else None, part_b),
        by_type,
        latencies,
        QuantileSummary.of(latency for latency in latencies if latency is not None),
    )


def _script(answers: ScoredAnswers) -> ProfileScore:
    """Whatever the file has, row by row; what was lost makes bounds of it."""
    by_type: dict[str, _Tally] = {}
    parts = {False: _Tally(), True: _Tally()}

    def add(question: Question, outcome: bool | None) -> None:  # noqa: FBT001 - as `_Tally.add`
        by_type.setdefault(question.category, _Tally()).add(outcome)
        if question.category != FALSE_MEMORY:
            parts[is_document(question.id)].add(outcome)

    for row in answers.rows:
        question = answers.questions.get(row.question)
        if question is None:
            continue
        is_probe = question.category == FALSE_MEMORY
        add(question, row.returned_nothing if is_probe else _verdict(answers, row, row.cut))
    # A row without a latency is one of 0 ms for the script, and rows of unknown questions pay too.
    latencies: list[float | None] = [row.latency_ms or 0 for row in answers.rows]
    ordered = sorted(latency for latency in latencies if latency is not None)
    for name in {*answers.lost} - answers.counted.keys():
        if (question := answers.questions.get(name)) is not None:
            add(question, None)
            latencies.append(None)
    quantiles = None
    if ordered:
        p50, p95, p99 = (ordered[int(len(ordered) * share)] for share in (0.5, 0.95, 0.99))
        quantiles = QuantileSummary(p50=p50, p95=p95, p99=p99)
    return _profile(
        "script",
        (parts[True].accuracy() if parts[True].total else None, parts[False].accuracy()),
        by_type,
        latencies,
        quantiles,
    )


def _verdict(answers: ScoredAnswers, row: ScoredRow, digest: str) -> bool | None:
    return False if row.returned_nothing else answers.verdicts.get((row.question, digest))


def _profile(
    profile: Profile,
    parts: tuple[WmbAccuracy | None, WmbAccuracy],
    by_type: Mapping[str, _Tally],
    latencies: Sequence[float | None],
    quantiles: QuantileSummary | None,
) -> ProfileScore:
    part_a, part_b = parts
    probes = by_type.get(FALSE_MEMORY, _Tally())
    false_memory = FalseMemory(
        probes=probes.total,
        false_positives=probes.wrong,
        unmeasured=probes.unmeasured,
        penalty=Range.of(probes.wrong * _PENALTY, (probes.wrong + probes.unmeasured) * _PENALTY),
    )
    speed = _speed(latencies, profile, quantiles)
    score = None
    if part_b.percent is not None:
        penalties = false_memory.penalty, speed.penalty
        score = Range.of(
            part_b.percent.low - penalties[0].high - penalties[1].high,
            part_b.percent.high - penalties[0].low - penalties[1].low,
        )
        if profile == "readme":
            # Sums of hundredths end at 79.99999999999986, which has a lower grade than 80.
            score = Range.of(round(score.low, 9), round(score.high, 9))
    grades = (
        set() if score is None or profile == "script" else {grade(score.low), grade(score.high)}
    )
    return ProfileScore(
        profile=profile,
        score=score,
        grade=grades.pop() if len(grades) == 1 else None,
        part_b=part_b,
        part_a=part_a,
        false_memory=false_memory,
        speed=speed,
        by_type={name: by_type[name].accuracy() for name in _in_order(by_type)},
    )


def _in_order(by_type: Collection[str]) -> list[str]:
    return [*(name for name in TYPES if name in by_type), *sorted({*by_type}.difference(TYPES))]


def _speed(
    latencies: Sequence[float | None], profile: Profile, quantiles: QuantileSummary | None
) -> Speed:
    penalty = 0.0
    for latency in latencies:
        # One after another, as the script adds them.
        penalty += 0.0 if latency is None else speed_penalty(latency, profile)
    unmeasured = sum(latency is None for latency in latencies)
    return Speed(
        answers=len(latencies),
        unmeasured=unmeasured,
        penalty=Range.of(penalty, penalty + unmeasured * _SLOWEST),
        p50=quantiles.p50 if quantiles else None,
        p95=quantiles.p95 if quantiles else None,
    )
