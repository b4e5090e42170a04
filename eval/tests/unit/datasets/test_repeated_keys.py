"""A key that an object has twice is an error in every file that holds data: one would be lost."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memconform.contract.strict_json import RepeatedKeyError, decode, depth, repeated_key_position
from memconform.datasets.benchmarks import open_benchmark
from memconform.datasets.registry import open_dataset
from memconform.errors import UsageError
from memconform.longmemeval.keys import read_keys

_LOCOMO = """[
 {"sample_id": "c1",
  "conversation": {"session_1_date_time": "1 May",
   "session_1": [{"dia_id": "D1:1", "speaker": "A", "text": "hi"}]},
  "qa": [{"question": "Q?", "answer": "one",
          "answer": "two", "evidence": ["D1:1"], "category": 4}]}
]"""

_LONGMEMEVAL = """[
 {"question_id": "q1", "question_type": "t", "question": "Q?", "answer": "a",
  "question_date": "2023/05/30", "haystack_dates": ["2023/05/20"],
  "haystack_session_ids": ["s1"], "answer_session_ids": ["s1"],
  "haystack_sessions": [[{"role": "user",
     "content": "one", "content": "two"}]]}
]"""

_MEMINI = """{"items": [{"id": "a", "content": "x"}],
 "questions": [{"query": "Q?",
   "gold": ["a"], "gold": []}]}"""


@pytest.mark.parametrize(
    ("content", "key", "line"),
    [(_LOCOMO, "answer", 6), (_LONGMEMEVAL, "content", 6), (_MEMINI, "gold", 3)],
    ids=["locomo", "longmemeval", "memini"],
)
def test_a_repeated_key_of_a_benchmark_is_named_with_its_line(
    tmp_path: Path, content: str, key: str, line: int
) -> None:
    path = tmp_path / "b.json"
    path.write_text(content)
    with pytest.raises(UsageError) as error:
        list(open_benchmark(path, None, {}))
    assert error.value.message.startswith(f"{path}: the key {key!r} occurs twice in one object")
    assert error.value.message.endswith(f"line {line}")
    # The same without the second value is read: it is the repetition that is refused.
    path.write_text(content.replace(f'"{key}": "two"', '"x": 1').replace('"gold": []', '"x": 1'))
    assert list(open_benchmark(path, None, {}))


@pytest.mark.parametrize("file", ["datasets/pets.jsonl", "datasets/all_questions.json"])
def test_a_repeated_key_of_wmb_is_named_with_its_line(tmp_path: Path, file: str) -> None:
    (tmp_path / "datasets").mkdir()
    turn = '{"turn_id": 1, "speaker": "A", "text": "hi", "embedded_facts": [],\t"text": "ho"}'
    question = (
        '{"id": "q.1", "category": "pets", "qtype": "S1", "text": "Q?", "gold_answer": "hi",\n'
        '"gold_turn_ids": [1], "required_memories": [],\n"gold_answer": "ho"}'
    )
    once = {'\t"text": "ho"': '"x": 1', '\n"gold_answer": "ho"': '\n"x": 1'}
    for name, text in (("pets.jsonl", f"\n{turn}"), ("all_questions.json", f"[\n{question}]")):
        for repeated, other in once.items():
            text = text if file.endswith(name) else text.replace(repeated, other)  # noqa: PLW2901
        (tmp_path / "datasets" / name).write_text(text.lstrip("\n"))
    with pytest.raises(UsageError, match="occurs twice in one object") as error:
        list(open_benchmark(tmp_path, "wmb", {}))
    assert str(tmp_path / file) in error.value.message
    assert f"line {1 if file.endswith('.jsonl') else 4}" in error.value.message


def test_a_repeated_key_of_a_cache_of_keys_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_text('{"a": "x",\n"a": "y"}')
    with pytest.raises(UsageError, match="the key 'a' occurs twice in one object, line 2"):
        read_keys(path)


def test_a_repeated_key_of_a_row_is_refused_before_a_run_starts(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text('{"id": "a", "question": "Q?", "abstain": true, "abstain": false}\n')
    with pytest.raises(UsageError) as error:
        open_dataset(str(path))
    assert f"{path}:1: the key 'abstain' occurs twice" in error.value.excerpt


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=150)
@given(_JSON, st.booleans())
def test_json_without_repeated_keys_is_decoded_as_usual(value: object, escaped: bool) -> None:  # noqa: FBT001 - hypothesis gives it
    assert decode(json.dumps(value, ensure_ascii=escaped)) == value


@settings(max_examples=150)
@given(st.dictionaries(st.text(), _JSON, min_size=1, max_size=4), st.data())
def test_the_position_of_a_repeated_key_is_found(
    value: dict[str, object], data: st.DataObject
) -> None:
    key = data.draw(st.sampled_from(sorted(value)))
    whole = json.dumps(value)
    text = f'[{whole[:-1]}, {json.dumps(key)}: 1}}, {{"x": 1}}]'
    with pytest.raises(RepeatedKeyError) as error:
        decode(text)
    assert error.value.key == key
    assert repeated_key_position(text, key) == len(whole) + 2


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[NaN]", "NaN is not JSON"),
        ("[-Infinity]", "-Infinity is not JSON"),
        ("[1e999]", "1e999 is too large a number"),
        ("9" * 10_000, "4300"),
        ("[" * 100_000, "nests too deeply"),
        ('{"a": 1, "a": 1}', "the key 'a' occurs twice"),
    ],
)
def test_ambiguous_json_is_rejected(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        decode(text)


def test_depth_is_that_of_the_deepest_value() -> None:
    assert [depth(value) for value in (1, [], {"a": 1}, [1, [{}], []])] == [0, 1, 1, 3]
