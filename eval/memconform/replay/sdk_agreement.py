"""Whether SDKs retrieve and answer alike, and on which questions they first differ."""

from collections.abc import Sequence
from itertools import combinations
from statistics import fmean
from typing import Literal

from memconform.errors import ExitCode
from memconform.replay.records import (
    HitRankings,
    HitRecord,
    LmePair,
    LmeParity,
    LmeQuestion,
    LmeResult,
    QuestionDivergence,
)
from memconform.stats.paired_comparison import Counts, ParityVerdict, compare_pairs
from memconform.stats.rankings import SCORE_TOLERANCE, overlap_at, rbo
from memconform.storage.provenance import HostOrigin

Stage = Literal["measured", "candidates", "order", "scores", "answer", "verdict"]


def compare_sdks(
    results: Sequence[LmeResult], *, command: Sequence[str], session_filter: str
) -> LmeParity:
    """Compare every pair of SDKs, by their answers and by the gold that they retrieved.

    p values are adjusted for all comparisons of both kinds together.

    Args:
        results: of the same questions, in the same order.
        command: that compares them.
        session_filter: why questions were asked of their own sessions alone, or not.
    """
    pairs = list(combinations(results, 2))
    answers = [_counts(first, second, "answers") for first, second in pairs]
    gold = [_counts(first, second, "gold") for first, second in pairs]
    compared = compare_pairs([*answers, *gold])
    made = [
        LmePair(
            first=first.sdk,
            second=second.sdk,
            answers=compared[number],
            gold=compared[len(pairs) + number],
            rankings=_rankings(first, second),
            divergences=_divergences(first, second),
        )
        for number, (first, second) in enumerate(pairs)
    ]
    verdicts = [verdict for pair in made for verdict in (pair.answers.verdict, pair.gold.verdict)]
    worst = max(verdicts, key=list(ParityVerdict).index)
    return LmeParity(
        started_at=results[0].started_at,
        exit_code=ExitCode.FAILED if worst is ParityVerdict.DRIFT else ExitCode.OK,
        **dict(HostOrigin.of(command)),
        verdict=worst,
        session_filter=session_filter,
        reasons=[
            f"{result.sdk}: {result.questions_run - result.measured} of {result.questions_run}"
            " questions not measured; its comparisons use the others"
            for result in results
            if result.measured < result.questions_run
        ],
        pairs=made,
    )


def _paired(first: LmeResult, second: LmeResult) -> list[tuple[LmeQuestion, LmeQuestion]]:
    return list(zip(first.questions, second.questions, strict=True))


def _counts(first: LmeResult, second: LmeResult, kind: Literal["answers", "gold"]) -> Counts:
    counts = Counts()
    for one, other in _paired(first, second):
        if kind == "answers":
            counts.same &= one.measured and other.measured and one.answer == other.answer
            if one.measured and other.measured:
                counts.add(first=one.correct, second=other.correct)
        else:
            counts.same &= one.retrieval_ms is not None
            counts.same &= _stage(one, other) in (None, "answer", "verdict")
            if one.gold_retrieved is not None and other.gold_retrieved is not None:
                counts.add(first=one.gold_retrieved, second=other.gold_retrieved)
    return counts


def _rankings(first: LmeResult, second: LmeResult) -> HitRankings:
    lists = [
        (_chunks(one), _chunks(other))
        for one, other in _paired(first, second)
        if one.retrieval_ms is not None and other.retrieval_ms is not None
    ]
    depth = max((len(each) for pair in lists for each in pair), default=0)
    return HitRankings(
        compared=len(lists),
        equal=sum(one == other for one, other in lists),
        overlap=fmean(overlap_at(*pair, depth) for pair in lists) if lists else None,
        rbo=fmean(rbo(*pair) for pair in lists) if lists else None,
    )


def _chunks(row: LmeQuestion) -> list[tuple[str, str]]:
    return [(hit.path, hit.text_sha256) for hit in row.hits]


def _divergences(first: LmeResult, second: LmeResult) -> list[QuestionDivergence]:
    return [
        QuestionDivergence(question=one.id, stage=stage, detail=_detail(stage, one, other))
        for one, other in _paired(first, second)
        if (stage := _stage(one, other)) is not None
    ]


def _stage(one: LmeQuestion, other: LmeQuestion) -> Stage | None:
    """The first stage at which two SDKs differ on a question; None if they do not."""
    if (one.retrieval_ms is None) != (other.retrieval_ms is None):
        return "measured"
    mine, yours = _chunks(one), _chunks(other)
    if set(mine) != set(yours):
        return "candidates"
    if mine != yours:
        return "order"
    scores = zip(one.hits, other.hits, strict=True)
    if any(abs(a.score - b.score) > SCORE_TOLERANCE for a, b in scores):
        return "scores"
    if one.answer != other.answer:
        return "answer"
    return "verdict" if one.judge_verdict != other.judge_verdict else None


def _detail(stage: Stage, one: LmeQuestion, other: LmeQuestion) -> str:
    match stage:
        case "measured":
            failed = one if one.retrieval_ms is None else other
            return f"{failed.code}: {failed.reason}"
        case "candidates" | "order":
            return _first_difference(one.hits, other.hits)
        case "scores":
            rank, a, b = next(
                (a.rank, a.score, b.score)
                for a, b in zip(one.hits, other.hits, strict=True)
                if abs(a.score - b.score) > SCORE_TOLERANCE
            )
            return f"at rank {rank} {a:.6f} and {b:.6f}"
        case "answer":
            return f"{_short(one.answer)} and {_short(other.answer)}"
        case "verdict":
            return f"{one.judge_verdict} and {other.judge_verdict}"


def _first_difference(mine: Sequence[HitRecord], yours: Sequence[HitRecord]) -> str:
    for one, other in zip(mine, yours, strict=False):
        if (one.path, one.text_sha256) != (other.path, other.text_sha256):
            return f"at rank {one.rank} {one.path} and {other.path}"
    return f"{len(mine)} and {len(yours)} hits"


def _short(text: str | None) -> str:
    return "no answer" if text is None else repr(text[:60])
