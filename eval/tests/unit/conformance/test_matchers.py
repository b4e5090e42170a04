"""Each matcher holds for the values it should match, and fails for others."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memconform.conformance.matcher_validation import check_matcher
from memconform.conformance.matchers import MATCHERS, BadMatcherError, is_rfc3339, mismatches
from memconform.conformance.pointer import MISSING, resolve

HOLDS: list[tuple[Any, Any]] = [
    ({"$number": "9007199254740993"}, 9007199254740993),
    ({"$number": "5"}, 5.0),
    ({"$ascending": True}, ["a", "b", "\uff01", "\U0001f5fc"]),
    ({"$ascending": True}, [1, 2.5, 3]),
    ({"$ascending": False}, ["b", "a"]),
    ({"$descending": True}, [2, 1, 1]),
    ({"$descending": False}, [1, 2]),
    ({"a": 1}, {"a": 1, "b": 2}),
    ([1, 2], [1, 2]),
    (5, 5.0),
    (None, None),
    ({"$equals": {"a": [1]}}, {"a": [1]}),
    ({"$type": "integer"}, 3),
    ({"$type": "number"}, 3.5),
    ({"$type": "null"}, None),
    ({"$regex": "^a+$"}, "aaa"),
    ({"$in": [1, {"a": 2}]}, {"a": 2, "b": 3}),
    ({"$range": [1, 3]}, 3),
    ({"$range": [None, 3]}, -100),
    ({"$approx": [1.0, 0.1]}, 1.05),
    ({"$digits": 2}, 0.25),
    ({"$digits": 9}, 2.137e-06),
    ({"$type": "integer"}, 3.0),
    ({"$contains": "ell"}, "hello"),
    ({"$contains": {"a": 1}}, [{"a": 2}, {"a": 1, "b": 1}]),
    ({"$items": [1, 2]}, ["a"]),
    ({"$items": [3, None]}, "abc"),
    ({"$set": [1, 2]}, [2, 1, 1]),
    ({"$multiset": [1, 1, 2]}, [2, 1, 1]),
    ({"$subset": [1]}, [3, 1]),
    ({"$prefix": [1, 2]}, [1, 2, 3]),
    ({"$prefix": "ab"}, "abc"),
    ({"a": {"$absent": True}}, {"b": 1}),
    ({"a": {"$absent": True}}, {"a": None}),
    ({"$absent": False}, 1),
    ({"$media_type": "application/json"}, "Application/JSON; charset=utf-8"),
    ({"$rfc3339": True}, "2024-02-29T23:59:59.5Z"),
    ({"$schema": "Health"}, {"ok": True}),
    ({"$each": {"$type": "string"}}, ["a", "b"]),
    ({"$any": 2}, [1, 2]),
    ({"$all": [{"$type": "string"}, {"$regex": "a"}]}, "a"),
    ({"$not": {"$contains": "x"}}, "abc"),
]

FAILS: list[tuple[Any, Any]] = [
    ({"$ascending": True}, ["a", "a"]),
    ({"$ascending": True}, ["\U0001f5fc", "\uff01"]),
    ({"$ascending": True}, ["a", 1]),
    ({"$ascending": True}, ["a"]),
    ({"$ascending": True}, []),
    ({"$ascending": False}, [1, 2]),
    ({"$descending": True}, [1, 2]),
    ({"$descending": True}, [1]),
    ({"$descending": True}, []),
    ({"$descending": False}, [2, 1]),
    ({"a": 1}, {"b": 1}),
    ({"a": 1}, [1]),
    ([1, 2], [1, 2, 3]),
    ([1, 2], [2, 1]),
    (1, True),
    (True, 1),
    ("1", 1),
    ({"$equals": {"a": 1}}, {"a": 1, "b": 2}),
    ({"$equals": [1]}, [True]),
    ({"$equals": 0}, False),
    ({"$type": "integer"}, True),
    ({"$type": "integer"}, 1.5),
    ({"$digits": 2}, 0.255),
    ({"$digits": 2}, "0.25"),
    ({"$not": 5}, MISSING),
    ({"$type": "number"}, "1"),
    ({"$type": "array"}, {}),
    ({"$regex": "^a+$"}, 5),
    ({"$in": [1, 2]}, 3),
    ({"$range": [1, 3]}, 3.1),
    ({"$range": [1, 3]}, True),
    ({"$range": [1, 3]}, "2"),
    ({"$range": [0, None]}, float("nan")),
    ({"$approx": [1.0, 0.1]}, 1.2),
    ({"$contains": "x"}, "hello"),
    ({"$contains": 5}, "hello5"),
    ({"$contains": 1}, MISSING),
    ({"$items": [1, 2]}, []),
    ({"$items": [1, 2]}, {"a": 1}),
    ({"$set": [1, 2]}, [1]),
    ({"$set": [1, 2]}, [1, 2, 3]),
    ({"$multiset": [1, 1, 2]}, [1, 2, 2]),
    ({"$multiset": [1]}, [1, 1]),
    ({"$number": "9007199254740993"}, 9007199254740992),
    ({"$number": "5"}, "5"),
    ({"$subset": [1, 1]}, [1]),
    ({"$subset": [1]}, "1"),
    ({"$prefix": [1, 2]}, [1]),
    ({"$prefix": [2]}, [1, 2]),
    ({"$prefix": "b"}, "abc"),
    ({"a": {"$absent": True}}, {"a": 0}),
    ({"$absent": False}, MISSING),
    ({"$media_type": "application/json"}, "application/problem+json"),
    ({"$media_type": "application/json"}, MISSING),
    ({"$rfc3339": True}, "2024-02-30T00:00:00Z"),
    ({"$rfc3339": True}, "2024-02-28"),
    ({"$schema": "Health"}, {"ok": "true"}),
    ({"$each": 1}, []),
    ({"$each": 1}, [1, 2]),
    ({"$any": 2}, []),
    ({"$all": [{"$type": "string"}, {"$regex": "a"}]}, "b"),
    ({"$not": {"$contains": "x"}}, "axe"),
    ({"$not": {"$type": "string"}}, "a"),
]


@pytest.mark.parametrize(("expected", "got"), HOLDS)
def test_holds(expected: Any, got: Any) -> None:
    check_matcher(expected)
    assert mismatches(expected, got) == []


@pytest.mark.parametrize(("expected", "got"), FAILS)
def test_fails(expected: Any, got: Any) -> None:
    check_matcher(expected)
    assert mismatches(expected, got)


def test_every_matcher_has_holding_and_failing_examples() -> None:
    for name in MATCHERS:
        assert any(name in str(expected) for expected, _ in HOLDS), name
        assert any(name in str(expected) for expected, _ in FAILS), name


@pytest.mark.parametrize(
    "expected",
    [
        {"$eqals": 1},
        {"$type": "int"},
        {"$regex": "("},
        {"$range": [1]},
        {"$range": [None, None]},
        {"$range": ["a", 2]},
        {"$in": 5},
        {"$schema": "Nothing"},
        {"$absent": "yes"},
        {"$approx": 1},
        {"$not": {"$nothing": 1}},
        {"a": [{"$type": "x"}]},
        {"$type": "string", "$regex": "x"},
    ],
)
def test_invalid_matchers_are_rejected(expected: Any) -> None:
    with pytest.raises(BadMatcherError):
        check_matcher(expected)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=2), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(JSON, JSON)
def test_equals_is_deep_equality(one: Any, other: Any) -> None:
    assert mismatches({"$equals": one}, one) == []
    if repr(one) != repr(other) and one != other:
        assert mismatches({"$equals": one}, other)


def test_a_mismatch_reports_its_location() -> None:
    [mismatch] = mismatches({"chunks": [{"path": "a"}]}, {"chunks": [{"path": "b"}]})
    assert str(mismatch) == "/chunks/0/path: expected 'a', got 'b'"


@pytest.mark.parametrize(
    ("pointer", "expected"),
    [
        ("", {"a": [{"b": 1}, {"b": 2}], "x/y": 3, "~": 4}),
        ("/a/0/b", 1),
        ("/a/*/b", [1, 2]),
        ("/x~1y", 3),
        ("/~0", 4),
        ("/a/2", MISSING),
        ("/a/b", MISSING),
        ("/a/-1", MISSING),
        ("/*", MISSING),
    ],
)
def test_pointers(pointer: str, expected: Any) -> None:
    value = {"a": [{"b": 1}, {"b": 2}], "x/y": 3, "~": 4}
    assert resolve(value, pointer) == expected


@pytest.mark.parametrize(
    "text", ["2024-01-01T24:00:00Z", "2024-01-01 10:00:00Z", "٢٠٢٤-01-01T10:00:00Z", 5]
)
def test_invalid_date_times(text: Any) -> None:
    assert not is_rfc3339(text)
