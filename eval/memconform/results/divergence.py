"""The stage at which two answers to one question diverge."""

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from memconform.contract.wire import UNCONFIRMED
from memconform.printing.plurals import plural
from memconform.runs.results import CitedChunk, QuestionResult, RankedChunk
from memconform.stats.rankings import SCORE_TOLERANCE


class Stage(StrEnum):
    """Stages of an answer, in the order in which they happen."""

    REQUEST = "request"
    CANDIDATES = "candidates"
    ORDER = "order"
    PROMPT = "prompt"
    DELTAS = "deltas"
    DONE = "done"
    ATTEMPTS = "attempts"
    SCORE = "score"

    @property
    def part(self) -> str:
        """The part of the system that is responsible for the stage."""
        return _PARTS[self]


_PARTS = {
    Stage.REQUEST: "harness",
    Stage.CANDIDATES: "retrieval",
    Stage.ORDER: "retrieval",
    Stage.PROMPT: "reader",
    Stage.DELTAS: "reader",
    Stage.DONE: "protocol",
    Stage.ATTEMPTS: "unstable",
    Stage.SCORE: "scorer",
}


class Divergence(NamedTuple):
    """The first stage at which two results differ, and how."""

    stage: Stage
    detail: str


def first_difference(one: QuestionResult, other: QuestionResult) -> Divergence | None:
    """The first stage at which two measured answers differ; None if they do not.

    A stage that is not recorded on both sides is skipped. A search returns only a ranking, and so
    has neither prompt nor deltas. With several attempts (`--repeat`), all stages but the last two
    compare the first attempt.
    """
    checks = (_request, ranking_difference, _prompt, _deltas, _done, _attempts, _score)
    divergences = (check(one, other) for check in checks)
    return next((divergence for divergence in divergences if divergence is not None), None)


def keys(one: QuestionResult, other: QuestionResult) -> tuple[list[str], list[str]]:
    """The keys by which the chunks of two rankings are matched.

    Chunks match by the hash of their text, because each SDK may choose its own paths. Older results
    lack the hashes; their chunks match by path and id.
    """
    hashed = all(c.content is not None for result in (one, other) for c in result.ranking)
    ours, theirs = (
        [c.content or "" if hashed else f"{c.path} {c.chunk_id}" for c in result.ranking]
        for result in (one, other)
    )
    return ours, theirs


def ranking_difference(one: QuestionResult, other: QuestionResult) -> Divergence | None:
    """Where two rankings diverge in chunks, order or scores; None if they do not.

    Neither do rankings of which one is not recorded.
    """
    if not (one.has_retrieval and other.has_retrieval):
        return None
    return _candidates(one, other) or _order(one, other)


def answer_difference(one: QuestionResult, other: QuestionResult) -> Divergence | None:
    """Where two answers diverge in text or citations; None if they do not."""
    return _deltas(one, other) or _done(one, other)


def _request(one: QuestionResult, other: QuestionResult) -> Divergence | None:
    if one.seen is None or other.seen is None or one.seen.request == other.seen.request:
        return None
    return Divergence(Stage.REQUEST, "the harness sent different requests")


def _candidates(one: QuestionResult, other: QuestionResult) -> Divergence | None:
    modes = [(r.trace or {}).get("effectiveMode", UNCONFIRMED) for r in (one, other)]
    if modes[0] != modes[1]:
        return Divergence(Stage.CANDIDATES, f"served as {modes[1]}, not {modes[0]}")
    ours, theirs = keys(one, other)
    missing = Counter(theirs) - Counter(ours)
    if not missing and len(ours) == len(theirs):
        return None
    if len(ours) != len(theirs):
        return Divergence(Stage.CANDIDATES, f"{plural(len(theirs), 'chunk')}, not {len(ours)}")
    rank, chunk = next(
        (rank, chunk)
        for rank, (chunk, key) in enumerate(zip(other.ranking, theirs, strict=True), 1)
        if key in missing
    )
    if any(chunk.chunk_id == c.chunk_id for c in one.ranking):
        return Divergence(Stage.CANDIDATES, f"different text for {chunk.chunk_id} at rank {rank}")
    if any(chunk.path == c.path for c in one.ranking):
        return Divergence(Stage.CANDIDATES, f"different chunk of {chunk.path} at rank {rank}")
    return Divergence(Stage.CANDIDATES, f"{chunk.path} at rank {rank} is not in the other ranking")


def _order(one: QuestionResult, other: QuestionResult) -> Divergence | None:
    pairs = list(zip(one.ranking, other.ranking, strict=True))
    for rank, (a, b, ours, theirs) in enumerate(
        zip(one.ranking, other.ranking, *keys(one, other), strict=True), 1
    ):
        if ours != theirs:
            return Divergence(Stage.ORDER, f"{b.path} at rank {rank}, not {a.path}")
    gap, rank = largest_gap(pairs)
    if gap > SCORE_TOLERANCE:
        return Divergence(Stage.ORDER, f"score differs by {gap:.3g} at rank {rank}")
    return None


def largest_gap(pairs: Sequence[tuple[RankedChunk, RankedChunk]]) -> tuple[float, int]:
    """The largest difference of scores, and its rank; (0, 0) without pairs."""
    gaps = ((abs(a.score - b.score), rank) for rank, (a, b) in enumerate(pairs, 1))
    return max(gaps, default=(0.0, 0))


def _prompt(one: QuestionResult, other: QuestionResult) -> Divergence | None:
    ours, theirs = ((r.seen.prompts if r.seen else None) for r in (one, other))
    if ours is None or theirs is None or ours == theirs:
        return None
    if len(ours) != len(theirs):
        return Divergence(
            Stage.PROMPT, f"{plural(len(theirs), 'request')} to the chat model, not {len(ours)}"
        )
    a, b = next((a, b) for a, b in zip(ours, theirs, strict=True) if a != b)
    differing = sorted(key for key in a.keys() | b.keys() if a.get(key) != b.get(key))
    return Divergence(Stage.PROMPT, f"the chat model received different {', '.join(differing)}")


def _deltas(one: QuestionResult, other: QuestionResult) -> Divergence | None:
    if one.answer == other.answer:
        return None
    return Divergence(Stage.DELTAS, f"answers {_cut(other.answer)}, not {_cut(one.answer)}")


def _done(one: QuestionResult, other: QuestionResult) -> Divergence | None:
    ours, theirs = ([_cited(r, c) for c in r.citations] for r in (one, other))
    return None if ours == theirs else Divergence(Stage.DONE, f"cites {theirs}, not {ours}")


def _cited(result: QuestionResult, cited: CitedChunk) -> int | str:
    """The rank of a cited chunk; its path if it is not in the ranking."""
    ranks = (rank for rank, c in enumerate(result.ranking, 1) if c.chunk_id == cited.chunk_id)
    return next(ranks, cited.path)


def _attempts(one: QuestionResult, other: QuestionResult) -> Divergence | None:
    ours, theirs = ([attempt.score for attempt in r.attempts] for r in (one, other))
    if ours == theirs:
        return None
    return Divergence(Stage.ATTEMPTS, f"attempts score {theirs}, not {ours}")


def _score(one: QuestionResult, other: QuestionResult) -> Divergence | None:
    ours, theirs = ((r.score, r.passed, r.verdict.value) for r in (one, other))
    if ours == theirs:
        return None
    return Divergence(Stage.SCORE, f"{theirs[2]}, score {theirs[0]}, not {ours[2]}, {ours[0]}")


def _cut(text: str | None) -> str:
    shown = repr(text)
    return shown if len(shown) <= 80 else f"{shown[:80]}…"
