"""The retrieval log of LongMemEval's released code: JSON lines, one question each.

`src/retrieval/run_retrieval.py` of xiaowu0162/LongMemEval writes such a file;
`src/generation/run_generation.py` and `src/evaluation/print_retrieval_metrics.py` read it.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memconform.contract.strict_json import decode
from memconform.datasets.files import PieceReader, lines, unfit
from memconform.datasets.haystacks import Item, Level
from memconform.datasets.longmemeval import EVIDENCE, official_items, session_of
from memconform.scoring.retrieval import official_metrics

KS = (1, 3, 5, 10, 30, 50)
"""Cutoffs of the metrics in a log."""
REQUESTED, IDS_SHA256 = "requested", "ids_sha256"
"""Keys of ours, which the released code ignores: how many items the ranking was to have, and a
digest of the ids in it, without which a ranking that was cut later would pass as a short one."""

_ANSWER, _NO_ANSWER = "answer", "noans"
"""Ids of evidence contain the first; the released code then writes the second if no user turn of
the session, or not this turn, contains the answer."""
_QUESTION_KEYS = (
    "question_id", "question_type", "question", "answer", "question_date", "haystack_dates",
    "haystack_sessions", "haystack_session_ids", "answer_session_ids",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LoggedRanking:
    """What a log contains about a question."""

    ids: tuple[str, ...]
    """Corpus ids, best first; they may repeat."""
    requested: int | None
    """How many items were to be ranked; None if the log does not say."""
    question: str | None
    """The text of the question; None if the log does not say."""


@dataclass(frozen=True, slots=True)
class RetrievalLog:
    """The rankings of a log."""

    path: Path
    sha256: str
    rankings: Mapping[str, LoggedRanking]
    """By question id."""


def read_log(path: Path) -> RetrievalLog:
    """Read the rankings of a log; the questions' sessions, which are most of it, are not kept.

    Raises:
        UsageError: if the file cannot be read (`dataset_unreadable`), or has an invalid line or a
            question twice (`dataset_invalid`).
    """
    rankings: dict[str, LoggedRanking] = {}
    with PieceReader(path) as source:
        for number, line in enumerate(lines(source), 1):
            if not line.strip():
                continue
            try:
                question, ranking = _parsed(line)
            except (KeyError, TypeError, ValueError, RecursionError) as error:
                reason = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else error
                raise unfit(
                    path,
                    f"line {number} is not an entry of a retrieval log: {reason}",
                    "give JSON lines with question_id and retrieval_results.ranked_items",
                ) from error
            if question in rankings:
                raise unfit(
                    path,
                    f"line {number}: question {question!r} occurs twice",
                    "keep one ranking for each question",
                )
            rankings[question] = ranking
        digest = source.sha256
    if not rankings:
        raise unfit(path, "contains no question", "give a log with one JSON object a line")
    return RetrievalLog(path, digest, rankings)


def _parsed(line: bytes) -> tuple[str, LoggedRanking]:
    entry: Any = decode(line.decode())
    question, results = entry["question_id"], entry["retrieval_results"]
    ids = [ranked["corpus_id"] for ranked in results["ranked_items"]]
    if not isinstance(question, str) or not all(isinstance(each, str) for each in ids):
        raise TypeError("an id is not a string")
    requested = results.get(REQUESTED)
    if requested is not None:
        if type(requested) is not int or requested < 1:
            raise TypeError(f"{REQUESTED!r} is not a number of items")
        # Another program's log has no digest of ours.
        if results.get(IDS_SHA256, digest := _ids_sha256(ids)) != digest:
            raise ValueError("its ranking has changed since it was exported, such as by a cut")
    query = results.get("query", entry.get("question"))
    if not isinstance(query, str | None):
        raise TypeError("the question is not a string")
    return question, LoggedRanking(tuple(ids), requested, query)


def _ids_sha256(ids: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(ids).encode("utf-8", "surrogatepass")).hexdigest()


def item_of(corpus_id: str, items: Collection[str]) -> str | None:
    """The item that a corpus id names; None if `items` does not have it."""
    if corpus_id in items:
        return corpus_id
    renamed = corpus_id.replace(_NO_ANSWER, _ANSWER)
    return renamed if renamed in items else None


def _corpus_id(item: Item) -> str:
    return item.id if item.metadata[EVIDENCE] else item.id.replace(_ANSWER, _NO_ANSWER)


def log_entry(
    question: Mapping[str, Any], ranking: Sequence[str], level: Level, requested: int
) -> dict[str, Any]:
    """The line of a log about a question.

    Texts are those of the released code, whatever text of the items was ranked. Metrics are at the
    cutoffs that the ranking reaches.

    Args:
        question: an element of a LongMemEval file.
        ranking: ids of items, best first; they may repeat.
        level: what an item is.
        requested: how many items the ranking was to have.

    Raises:
        KeyError: if the question has no such item.
    """
    corpus = list(official_items(question, level))
    by_item = {item.id: item for item in corpus}
    ranked = [by_item[item] for item in ranking]
    is_whole = len(set(ranking)) == len(by_item)
    # The released code ranks everything, so that its log has all cutoffs even in a small corpus.
    ks = [k for k in KS if is_whole or k <= requested]
    metrics: dict[str, dict[str, float]] = {"session": {}, "turn": {}}
    metrics[level] = _metrics(corpus, ranked, ks, by_session=False)
    if level == "turn":
        metrics["session"] = _metrics(corpus, ranked, ks, by_session=True)
    return {
        **{key: question[key] for key in _QUESTION_KEYS},
        "retrieval_results": {
            "query": question["question"],
            "ranked_items": [
                {"corpus_id": _corpus_id(each), "text": each.text, "timestamp": each.date}
                for each in ranked
            ],
            "metrics": metrics,
            REQUESTED: max(requested, len(by_item)) if is_whole else requested,
            IDS_SHA256: _ids_sha256(map(_corpus_id, ranked)),
        },
    }


def _metrics(
    corpus: Sequence[Item], ranked: Sequence[Item], ks: Sequence[int], *, by_session: bool
) -> dict[str, float]:
    relevant = [each for each in map(_corpus_id, corpus) if _ANSWER in each]
    ids = list(map(_corpus_id, ranked))
    if by_session:
        relevant, ids = (list(map(session_of, corpus_ids)) for corpus_ids in (relevant, ids))
    if not relevant:
        # The released code writes these for a question without gold; its means skip it.
        absent = {"recall_any": 0.0, "recall_all": 1.0, "ndcg_any": 0.0}
        return {f"{name}@{k}": value for k in ks for name, value in absent.items()}
    return official_metrics(ids, set(relevant), ks, relevant=len(relevant), by_session=by_session)
