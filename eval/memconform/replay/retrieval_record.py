"""What is journalled of a question's retrieval."""

import hashlib

from memconform.redaction import hides
from memconform.replay.daemon import Retrieved
from memconform.replay.hits import Hit
from memconform.replay.records import HitRecord, ReplayRetrieval

_PREVIEW = 200
"""Characters of a hit's text in a result."""


def retrieval_record(question: str, retrieved: Retrieved) -> ReplayRetrieval:
    """What is journalled of a question."""
    texts = [hit.text for hit in retrieved.hits]
    secret = any(map(hides, (*texts, retrieved.answer or "")))
    return ReplayRetrieval(
        question=question,
        hits=[hit_record(hit) for hit in retrieved.hits],
        texts=texts,
        answer=retrieved.answer,
        redacted=secret,
        **dict(retrieved.observed),
    )


def hit_record(hit: Hit) -> HitRecord:
    """A hit without its text."""
    return HitRecord(
        rank=hit.rank,
        path=hit.path,
        kind=hit.kind,
        session=hit.session,
        score=hit.score,
        text_sha256=hashlib.sha256(hit.text.encode("utf-8", "surrogatepass")).hexdigest(),
        preview=hit.text[:_PREVIEW],
    )
