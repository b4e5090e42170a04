"""The texts of a bench's answers, which are on disk and not in memory."""

from typing import Any

from memconform.bench.records import QueryRecord
from memconform.bench.returned_texts import ReturnedTexts


def _record(query: str, memories: list[str] | None) -> QueryRecord:
    fields: dict[str, Any] = {"query": query, "memories": memories}
    return QueryRecord.model_construct(**fields)


def test_texts_come_back_to_the_record_that_had_them() -> None:
    texts = ReturnedTexts()
    records = {
        "a": _record("a", ["é\n", "\u2028" * 3, ""]),
        "b": _record("b", []),
        "c": _record("c", None),
        "d": _record("d", ["x" * 100_000]),
    }
    stored = {key: texts.put(key, record) for key, record in records.items()}
    assert not any(record.memories for record in stored.values())
    for key in reversed(records):
        assert texts.restored(key, stored[key]).memories == records[key].memories


def test_a_query_that_is_measured_again_has_its_new_texts() -> None:
    texts = ReturnedTexts()
    texts.put("a", _record("a", ["old"]))
    assert texts.restored("a", texts.put("a", _record("a", ["new"]))).memories == ["new"]
    assert texts.restored("a", texts.put("a", _record("a", None))).memories is None
