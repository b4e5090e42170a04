"""Cases from the vectors of scores: fusion and dates."""

import datetime as dt
from typing import Any

from vector_probes import cosine_vectors
from vector_steps import FAKE, SCRIPTED, case, embedding, ingest, script, search, vectors

_FIRST_DAY = dt.date.min.toordinal() - dt.date(1970, 1, 1).toordinal()


def fusion() -> list[dict[str, Any]]:
    """Scripted embeddings and rerankings make the scores of the vectors."""
    found = vectors("fusion")
    rounded = [("", {"rules": [{"kind": "rerank", "reply": {"body": {"results": [
        {"index": 0, "relevance_score": entry["score"]}]}}}], "rounded": entry["rounded"]})
        for entry in found["rounding"]]  # fmt: skip
    kernel: list[tuple[str, dict[str, Any]]] = []
    # A daemon may cache vectors, so no two variants embed the same text.
    for number, entry in enumerate(found["kernel"]):
        query, [vector] = cosine_vectors([entry["cosine"]])
        rules = [embedding(vector, f"heron waits {number}."), embedding(query)]
        kernel.append((f"cosine {entry['cosine']}", {
            "rules": rules, "score": entry["inverse-l2"], "query": f"heron cosine{number}",
            "text": f"The heron waits {number}."}))  # fmt: skip
    fused, nothing = [], []
    for number, entry in enumerate(found["cases"]):
        keyword, scores = dict(entry["keyword"]), dict(entry["vector"])
        names = sorted({*keyword, *scores})
        if not names:
            nothing.append((entry["fusion"], {"fusion": entry["fusion"]}))
        # One size of pool for both legs, and each chunk has a vector.
        if not names or len(keyword) != len(scores):
            continue
        query, rows = cosine_vectors([scores.get(name, -0.5) for name in names])
        tuning = {key: entry[key] for key in ("fusion", "alpha") if key in entry}
        if "k" in entry:
            tuning["rrfK"] = entry["k"]
        fused.append((entry["fusion"], {
            "rules": [*(embedding(row, f"word{name}{number}")
                        for row, name in zip(rows, names, strict=True)), embedding(query)],
            "documents": {f"{name}.md": f"word{name}{number}" for name in names},
            # Equal words have equal scores, and a word that is repeated counts as often.
            "query": " ".join(f"Word{name}{number}" for name, score in keyword.items()
                              for _ in range(int(score))),
            "pool": len(keyword), "tuning": tuning,
            "chunks": [{"path": f"{name}.md", "score": {"$approx": [score, 1e-8]}}
                       for name, score in entry["fused"]],
        }))  # fmt: skip
    hybrid = search(query="${v.query}", mode="hybrid", candidateK="${v.pool}", tuning="${v.tuning}")
    return [
        case("rounding", "Scores are rounded as in the vectors", ["core.search.order"], rounded,
             modes=["hybrid-rerank"], daemon=SCRIPTED, documents={"a.md": "The heron waits."},
             setup=[script("${v.rules}")],
             steps=[search(query="heron", mode="hybrid-rerank") | {"expect": {
                 "score": {"at": "/chunks/*/score", "is": ["${v.rounded}"]}}}]),
        case("kernel", "The kernel makes the scores of the vectors", ["core.rank.kernel"], kernel,
             level="should", modes=["semantic"], daemon=SCRIPTED,
             setup=[script("${v.rules}"), ingest("a.md", "${v.text}")],
             steps=[search(query="${v.query}", mode="semantic", tuning={"kernel": "inverse-l2"}) | {
                 "expect": {"score": {"at": "/chunks/*/score", "is": [
                     {"$approx": ["${v.score}", 1e-9]}]}}}]),
        case("fusion", "hybrid makes the scores of the vectors", ["core.rank.hybrid"], fused,
             modes=["hybrid"], daemon=SCRIPTED,
             setup=[script("${v.rules}"), {"store": "${v.documents}"}],
             steps=[hybrid | {"expect": {"fused": {"at": "/chunks", "is": "${v.chunks}"}}}]),
        case("fusion-none", "hybrid of two empty legs is empty", ["core.rank.hybrid"], nothing,
             modes=["hybrid"], daemon=FAKE, documents={"a.md": "The heron waits."},
             steps=[search(query="heron", mode="hybrid") | {
                        "require": [{"at": "/chunks", "is": {"$items": [1, 1]}}]},
                    search(query="?", mode="hybrid", tuning={"fusion": "${v.fusion}"}) | {
                        "expect": {"none": {"at": "/chunks", "is": []}}}]),
    ]  # fmt: skip


def dates() -> list[dict[str, Any]]:
    """A moment shows in the decay of one day; scores of the vectors are those of rrf."""
    found = vectors("dates")
    good: list[tuple[str, str]] = []
    bad: list[tuple[str, str]] = []
    decays: list[tuple[str, dict[str, Any]]] = []
    for entry in found["moments"]:
        text, seconds = entry["text"], entry["seconds"]
        (bad if seconds is None else good).append((text, text))
        if seconds is None:
            decays.append((f"not {text}", {"date": text, "now": "2024-01-31", "score": 0}))
        else:
            decays.append((text, {"date": text, "now": _date_time(seconds + 86_400),
                                  "score": 0.367879441}))  # fmt: skip
    scored = [(_what(entry), _dated(entry)) for entry in found["cases"]]
    recency = {"now": "${v.now}", "relevance": 0, "weight": 1, "decayDays": 1}
    tuning = {"fusion": "rrf", "recency": recency}
    dated = {"a.md": {"text": "heron", "metadata": {"date": "${v.date}"}}}
    query = search(query="heron", mode="bm25", questionDate="${v}")
    return [
        case("dates", "A date of the vectors is accepted", ["core.search.refuse"], good,
             documents={"a.md": "heron"}, steps=[query | {
                 "expect": {"accepted": {"at": "/chunks/*/path", "is": ["a.md"]}}}]),
        case("dates-bad", "What the vectors do not accept as a date is rejected",
             ["core.search.refuse"], bad, documents={"a.md": "heron"},
             steps=[query | {"expect": {"rejected": "validation_error"}}]),
        case("dates-age", "The age of a date of the vectors is exact to the second",
             ["core.rank.recency"], decays, level="should", modes=["hybrid"], daemon=FAKE,
             documents=dated, steps=[search(query="heron", mode="hybrid", tuning=tuning) | {
                 "expect": {"score": {"at": "/chunks/*/score", "is": [
                     {"$approx": ["${v.score}", 1.5e-9]}]}}}]),
        case("dates-scores", "Dates make the scores of the vectors",
             ["core.rank.recency", "core.rank.temporal"], scored, level="should",
             modes=["hybrid"], daemon=FAKE, documents="${v.documents}",
             steps=[search(query="${v.query}", mode="hybrid", topK=100, tuning="${v.tuning}") | {
                 "expect": {"scores": {"at": "/chunks", "is": {"$subset": "${v.chunks}"}}}}]),
    ]  # fmt: skip


def _what(entry: dict[str, Any]) -> str:
    return " ".join(key for key in ("recency", "temporal") if entry[key])


def _dated(entry: dict[str, Any]) -> dict[str, Any]:
    """Documents whose scores by rrf are those of the entry: 2 / (5 + rank), of equal texts by path.

    Documents without a date have the ranks between. If all scores are 0, so is alpha, and the query
    has no word of the documents.
    """
    is_zero = not any(score for score, _ in entry["hits"])
    ranks = [number if is_zero else round(2 / score - 5)
             for number, (score, _) in enumerate(entry["hits"])]  # fmt: skip
    by_rank = dict(zip(ranks, entry["hits"], strict=True))
    documents: dict[str, Any] = {}
    for rank in range(ranks[-1] + 1):
        _, date = by_rank.get(rank, (None, None))
        dated = {"text": "heron", "metadata": {"date": date}}
        documents[f"d{rank:02}.md"] = dated if date else "heron"
    tuning = {key: entry[key] for key in ("recency", "temporal") if entry[key]}
    return {
        "documents": documents,
        "query": "kettle" if is_zero else "heron",
        "tuning": {**tuning, **({"alpha": 0} if is_zero else {"fusion": "rrf"})},
        "chunks": [{"path": f"d{rank:02}.md", "score": {"$approx": [score, 2.5e-9]}}
                   for rank, score in zip(ranks, entry["scores"], strict=True)],
    }  # fmt: skip


def _date_time(seconds: int) -> str:
    """Seconds from 1970 as an RFC 3339 date-time, which may be in the year 0."""
    days, clock = divmod(seconds, 86_400)
    years = 0
    while days < _FIRST_DAY:
        days, years = days + 146_097, years + 400
    day = dt.date(1970, 1, 1) + dt.timedelta(days)
    hours, rest = divmod(clock, 3_600)
    time = f"{hours:02}:{rest // 60:02}:{rest % 60:02}"
    return f"{day.year - years:04}-{day.month:02}-{day.day:02}T{time}Z"
