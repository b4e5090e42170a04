"""Names the rule that a difference from the oracle most likely breaks. Pure."""

import re
from functools import cache
from typing import Any

from memconform.conformance.pointer import MISSING, resolve
from memconform.conformance.rules import rules
from memconform.contract.wire import JsonValue
from memconform.fuzzing.expectations import ExpectedAnswer
from memconform.oracle.bm25 import query_terms

_BODY_RULES = (
    (r"/chunks/\d+/(chunkId|documentId)", "core.chunk.id"),
    (r"/chunks/\d+/text", "core.search.text"),
    (r"/chunks/\d+/(title|metadata)", "core.chunk.front-matter"),
    (r"/trace/tuning", "core.tuning"),
    (r"/trace/(effectiveMode|embedderUsed|fellBackToBm25)", "core.mode.served"),
    (r"/trace", "core.mode.trace"),
    (r"/description", "core.brain.create"),
    (r"/(documents|chunks|vectors|pending)$", "core.brain.counts"),
    (r"/(items/\d+/)?(documentId)$", "core.chunk.id"),
    (r"/(items/\d+/)?chunkCount$", "core.chunk.cut"),
)
_EVENT_RULES = {
    "retrieve": "ask.order",
    "answer_delta": "ask.reader.fake",
    "citation": "ask.citation",
    "done": "ask.answer",
    "error": "ask.error",
}
_MODE_RULES = {
    "bm25": "core.rank.bm25",
    "semantic": "core.rank.semantic",
    "hybrid": "core.rank.hybrid",
    "conversation": "core.rank.conversation",
}


@cache
def rank(rule: str) -> int:
    """The place of a rule in the contract, whose most basic rules come first."""
    order = list(rules())
    return order.index(rule) if rule in order else len(order)


def blame(expected: ExpectedAnswer, pointer: str, request: Any) -> str:  # noqa: ANN401 - JSON
    """Return the rule that is most likely broken at a pointer into the answer.

    Args:
        expected: The permitted answer that is nearest, and the actual one.
        pointer: Where they differ.
        request: The body of the request.
    """
    part, _, rest = pointer.removeprefix("/").partition("/")
    match part:
        case "failure":
            return "robust.alive"
        case "media":
            return "wire.json"
        case "headers":
            is_cache = rest.startswith("cache-control")
            return "documents.no-store" if is_cache else "wire.problem"
        case "fault":
            return _detail_rule(expected)
        case "body":
            return _body_rule(expected, rest, request)
    return expected.rule


def _detail_rule(expected: ExpectedAnswer) -> str:
    if not expected.actual.fault.startswith("detail:"):
        return "wire.shape"
    is_ops = "ops[" in expected.actual.fault
    return "documents.batch.atomic" if is_ops else "core.ingest.batch"


def _body_rule(expected: ExpectedAnswer, rest: str, request: JsonValue) -> str:
    body, actual = expected.answer.body, expected.actual.body
    if (expected.answer.status or 0) >= 400:
        return "wire.problem"
    if isinstance(body, list):
        return _event_rule(expected, body, rest, request)
    if isinstance(body, dict) and "trace" in body and rest.startswith("chunks"):
        return _ranking_rule(body, actual, f"/{rest}", request)
    return _pattern_rule(f"/{rest}") or expected.rule


def _pattern_rule(pointer: str) -> str:
    return next((rule for form, rule in _BODY_RULES if re.match(form, pointer)), "")


def _event_rule(
    expected: ExpectedAnswer, body: list[JsonValue], rest: str, request: JsonValue
) -> str:
    number, _, inside = rest.partition("/")
    # Without a number, the answer is no stream at all.
    index = int(number) if number.isdigit() else len(body)
    if index >= len(body) or not inside.startswith(("1", "2")):
        return expected.rule
    name = body[index][0]
    if inside.startswith("2"):
        return "events.ids" if name == "change" else expected.rule
    if name == "retrieve" and "/" in inside:
        actual = resolve(expected.actual.body, f"/{index}/1")
        within = "/" + inside.partition("/")[2]
        if within.startswith("/chunks"):
            return _ranking_rule(body[index][1], actual, within, request)
        return _pattern_rule(within) or "ask.order"
    if name == "change":
        return "events.batch" if "reason" in inside else "events.change"
    return _EVENT_RULES.get(name, expected.rule)


def _ranking_rule(body: Any, actual: Any, pointer: str, request: Any) -> str:  # noqa: ANN401 - JSON
    """Tell apart what is found, how it is scored, how it is ordered, and what it carries."""
    wanted, given = _ranking(body), _ranking(actual)
    if given is None or wanted is None:
        return "core.search.shape"
    if [key for key, _ in wanted] == [key for key, _ in given] and "/score" not in pointer:
        return _pattern_rule(pointer) or "core.search.shape"
    if sorted(wanted) == sorted(given):
        return "core.search.order"
    tuning = (request.get("tuning") if isinstance(request, dict) else None) or {}
    mode = body["trace"]["effectiveMode"]
    if {key for key, _ in given} != {key for key, _ in wanted}:
        asked = request if isinstance(request, dict) else {}
        query = asked.get("query") or asked.get("question")
        # Vectors rank every chunk: that none is found is due to the query or to the filters.
        if not wanted and mode != "bm25" and isinstance(query, str) and not query_terms(query):
            return "core.rank.terms"
        if asked.get("filters"):
            return "core.filter.keys"
    return _score_rule(mode, tuning)


def _score_rule(mode: str, tuning: Any) -> str:  # noqa: ANN401 - JSON
    """The rule that computes the scores of a mode."""
    used = {"hybrid": ("temporal", "recency", "kernel"), "semantic": ("kernel",)}.get(mode, ())
    for key in used:
        if tuning.get(key) not in (None, "cosine"):
            return f"core.rank.{key}"
    return _MODE_RULES.get(mode, "core.search.shape")


def _ranking(body: JsonValue) -> list[tuple[str, float]] | None:
    chunks = resolve(body, "/chunks")
    if chunks is MISSING or not isinstance(chunks, list):
        return None
    try:
        return [(str(chunk["chunkId"]), float(chunk["score"])) for chunk in chunks]
    except (KeyError, TypeError, ValueError):
        return None
