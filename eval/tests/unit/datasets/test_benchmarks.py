"""Benchmarks of the field as haystacks: the oddities of the public files, on small ones."""

import gzip
import hashlib
import json
import lzma
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from memconform.cli.bench import command as bench
from memconform.cli.datasets.benchmarks import convert_command
from memconform.datasets import benchmarks, json_array
from memconform.datasets.benchmarks import Format, formats, open_benchmark
from memconform.datasets.files import PIECE, PieceReader, lines
from memconform.datasets.haystacks import Haystack, Item
from memconform.datasets.json_array import elements
from memconform.datasets.longmemeval import official_gold, official_sessions
from memconform.datasets.memini import memini_json
from memconform.datasets.question import Question
from memconform.errors import UsageError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


def _write(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def _read(path: Path, name: str | None = None, **options: str) -> list[Haystack]:
    return list(open_benchmark(path, name, options))


@pytest.mark.parametrize("name", ["lme", "sample"])
def test_what_ships_is_taken_by_name_and_the_help_says_so(name: str, tmp_path: Path) -> None:
    """`convert` and `bench --data` took names of which their help said nothing."""
    target = str(tmp_path / "memini.json")
    ended = CliRunner().invoke(convert_command, [name, "-o", target], standalone_mode=False)
    assert ended.exception is None
    assert "`sample`, or a name that `datasets list` shows" in (convert_command.help or "")
    (data,) = (each for each in bench.command.params if each.name == "data")
    assert "`sample`, or a name that `datasets list` shows" in data.to_info_dict()["help"]


# --- files


_TEXT = st.characters(exclude_categories=["Cs"])
_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(_TEXT),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


_WRITTEN = st.fixed_dictionaries(
    {"ensure_ascii": st.booleans(), "indent": st.sampled_from((None, 1))}
)


@pytest.fixture
def tiny_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elements, texts and characters are cut wherever they can be."""
    monkeypatch.setattr(json_array, "PIECE", 3)


@settings(max_examples=150)
@given(st.lists(_JSON, max_size=5), _WRITTEN)
def test_elements_are_those_of_the_array_however_it_is_cut(
    tmp_path_factory: pytest.TempPathFactory, value: list[Any], written: dict[str, Any]
) -> None:
    path = tmp_path_factory.mktemp("json") / "a.json"
    path.write_text(json.dumps(value, **written), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_array, "PIECE", 3)
        assert _elements(path) == value


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is not a JSON array, at byte 0"),
        (b'{"a": 1}', "is not a JSON array, at byte 0"),
        (b'[{"a": 1}', "ends too early, at byte 9"),
        (b'[{"a": "\xc3\xa9"}, {"b": "x', "ends too early, at byte 20"),
        (b"[1, 2", "ends too early, at byte 5"),
        (b"[1,", "ends too early, at byte 3"),
        (b"[1 2]", "lacks a comma, at byte 3"),
        (b"[1] x", "has data after the end of the array, at byte 4"),
        (b"[NaN]", "NaN is not JSON, at byte 1"),
        (b'[{"a": tru}, ' + b"1, " * 40 + b"1]", "Expecting value, at byte 7"),
        (b'["\xff"]', "is not UTF-8, at byte 2"),
        (b'["\xc3\xa9", "\xc3', "is not UTF-8, at byte 8"),
        (b'\xef\xbb\xbf["a" 1]', "lacks a comma, at byte 8"),
    ],
)
def test_invalid_arrays_are_reported_with_file_and_byte(
    tmp_path: Path, content: bytes, why: str
) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(UsageError) as error:
        _elements(path)
    assert str(path) in error.value.message
    assert why in error.value.message


@pytest.mark.usefixtures("tiny_pieces")
def test_a_fault_amid_a_file_is_found_without_reading_all_of_it(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b'[{"a" 1}, ' + b'{"a": 1}, ' * 10_000 + b"1]")
    with PieceReader(path) as source, pytest.raises(UsageError, match="at byte 6"):
        list(elements(source))
    assert source.size < 1_000


@pytest.mark.parametrize(
    ("ending", "pack"),
    [
        ("", bytes),
        (".gz", gzip.compress),
        (".xz", lzma.compress),
        (".zst", zstd.compress),
    ],
)
def test_a_packed_file_is_read_as_what_it_holds(tmp_path: Path, ending: str, pack: Any) -> None:
    content = b'[{"a": 1}, {"b": 2}]'
    path = tmp_path / f"a.json{ending}"
    path.write_bytes(pack(content))
    with PieceReader(path) as source:
        assert list(elements(source)) == [{"a": 1}, {"b": 2}]
        assert source.sha256 == _sha256(content)
    path.write_bytes(pack(content)[:-6])
    with pytest.raises(UsageError, match=r"ended before|ends too early"):
        _elements(path)
    path.write_bytes(b"no such thing")
    with pytest.raises(UsageError, match=r"a\.json"):
        _elements(path)


def test_lines_are_whole_however_the_file_is_cut(tmp_path: Path) -> None:
    content = [b"x" * length for length in (PIECE - 1, 0, 5, 2 * PIECE, 7, PIECE, 3)]
    path = tmp_path / "a.jsonl"
    for end in (b"", b"\n"):
        path.write_bytes(b"\n".join(content) + end)
        with PieceReader(path) as source:
            assert list(lines(source)) == content


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _elements(path: Path) -> list[Any]:
    with PieceReader(path) as source:
        return list(elements(source))


# --- LoCoMo


def _turn(turn_id: str, text: str, speaker: str = "Ana") -> dict[str, str]:
    return {"dia_id": turn_id, "speaker": speaker, "text": text}


def _locomo(*rows: dict[str, Any]) -> list[dict[str, Any]]:
    conversation = {
        "speaker_a": "Ana",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [_turn("D1:1", "Hi!"), _turn("D1:2", "I saw a heron.", "Bo")],
        "session_2_date_time": "2:00 pm on 9 May, 2023",
        "session_2": [_turn("D2:1", "It is back.")],
        "session_3_date_time": "there is no such session",
    }
    return [{"sample_id": "conv-1", "conversation": conversation, "qa": list(rows)}]


def _row(*evidence: str, category: int = 4, **more: Any) -> dict[str, Any]:
    return {"question": "Who saw it?", "evidence": list(evidence), "category": category} | (
        more or {"answer": "Bo"}
    )


def _only(path: Path, **options: str) -> Haystack:
    [haystack] = _read(path, **options)
    return haystack


def test_locomo_items_are_turns_or_sessions_with_their_dates(tmp_path: Path) -> None:
    path = _write(tmp_path / "l.json", _locomo(_row("D1:2")))
    turns = _only(path)
    assert [item.id for item in turns.items] == ["D1:1", "D1:2", "D2:1"]
    assert turns.items[1].text == "[1:56 pm on 8 May, 2023] Bo: I saw a heron."
    assert turns.queries[0].gold == ("D1:2",)
    sessions = _only(path, level="session")
    assert [item.id for item in sessions.items] == ["D1", "D2"]
    assert sessions.items[0].text == "[1:56 pm on 8 May, 2023]\nAna: Hi!\nBo: I saw a heron."
    assert sessions.queries[0].gold == ("D1",)


def test_locomo_sessions_stand_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    [sample] = _locomo(_row("D1:1"))
    sample["conversation"] |= {"session_10_date_time": "x", "session_10": [_turn("D10:1", "y")]}
    path = _write(tmp_path / "l.json", [sample])
    assert [item.id for item in _only(path, level="session").items] == ["D1", "D2", "D10"]


@pytest.mark.parametrize(
    ("evidence", "gold"),
    [
        (["D1:1; D2:1"], ("D1:1", "D2:1")),
        (["D1:1 D2:1"], ("D1:1", "D2:1")),
        (["D1:1", "D1:1"], ("D1:1",)),
        (["D", "D1:2"], ("D1:2",)),
    ],
)
def test_locomo_evidence_that_is_malformed_is_read_for_its_ids(
    tmp_path: Path, evidence: list[str], gold: tuple[str, ...]
) -> None:
    assert _only(_write(tmp_path / "l.json", _locomo(_row(*evidence)))).queries[0].gold == gold


def test_locomo_evidence_without_a_turn_is_a_reported_miss_at_turn_level(
    tmp_path: Path,
) -> None:
    path = _write(tmp_path / "l.json", _locomo(_row("D2:01"), _row("D:11:26"), _row("D1:1")))
    turns = _only(path)
    assert [query.id for query in turns.queries] == ["conv-1#0", "conv-1#2"]
    assert [entry.id for entry in turns.dropped] == ["conv-1#0", "conv-1#1"]
    sessions = _only(path, level="session")
    assert [query.id for query in sessions.queries] == ["conv-1#2"]
    assert {entry.id for entry in sessions.dropped} == {"conv-1#0", "conv-1#1"}


def test_locomo_adversarial_rows_have_no_answer_and_numbers_are_answers_too(
    tmp_path: Path,
) -> None:
    rows = (
        _row("D1:1", category=5, adversarial_answer="Ana"),
        _row("D1:1", category=5, answer="x", adversarial_answer="Ana"),
        _row("D1:1", category=2, answer=2022),
    )
    queries = _only(_write(tmp_path / "l.json", _locomo(*rows))).queries
    assert [(q.category, q.answers, q.abstain) for q in queries] == [
        ("adversarial", (), True),
        ("adversarial", (), True),
        ("temporal", ("2022",), False),
    ]


# --- LongMemEval


_UNSAID = {"role": "assistant", "content": "x", "has_answer": True}


def _question(name: str = "q1", **more: Any) -> dict[str, Any]:
    said = {"role": "user", "content": "I saw a heron.", "has_answer": True}
    answered = {"role": "assistant", "content": "Nice!"}
    return {
        "question_id": name,
        "question_type": "multi-session",
        "question": "What did I see?",
        "answer": 3,
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/19 (Fri) 02:21"],
        "haystack_session_ids": ["s1", "s2"],
        "haystack_sessions": [[said, answered], [answered]],
        "answer_session_ids": ["s1"],
    } | more


@pytest.mark.parametrize(
    ("doc", "first", "second"),
    [
        ("full", "user: I saw a heron.\nassistant: Nice!", "assistant: Nice!"),
        ("user-only", "I saw a heron.", "assistant: Nice!"),
        (
            "dated",
            "[2023/05/20 (Sat) 02:21]\nuser: I saw a heron.\nassistant: Nice!",
            "[2023/05/19 (Fri) 02:21]\nassistant: Nice!",
        ),
        # The released code has nothing to index of a session in which no user speaks.
        ("official", "I saw a heron.", ""),
    ],
)
def test_longmemeval_texts_of_a_session(tmp_path: Path, doc: str, first: str, second: str) -> None:
    haystack = _only(_write(tmp_path / "q.json", [_question()]), session_doc=doc)
    assert [item.text for item in haystack.items] == [first, second]
    assert haystack.queries[0].answers == ("3",)
    assert haystack.queries[0].gold == ("s1",)


def test_longmemeval_a_repeated_session_counts_as_the_last(tmp_path: Path) -> None:
    row = _question(haystack_session_ids=["s1", "s1"])
    assert [item.text for item in _only(_write(tmp_path / "q.json", [row])).items] == [
        "assistant: Nice!"
    ]


@pytest.mark.parametrize("level", ["session", "turn"])
def test_longmemeval_drops_the_earlier_of_repeated_sessions(tmp_path: Path, level: str) -> None:
    old = [{"role": "user", "content": f"old {n}", "has_answer": True} for n in range(2)]
    new = [{"role": "user", "content": "new", "has_answer": True}]
    row = _question(haystack_session_ids=["s1", "s1"], haystack_sessions=[old, new])
    haystack = _only(_write(tmp_path / "q.json", [row]), level=level)
    assert [item.text.removeprefix("user: ") for item in haystack.items] == ["new"]
    assert ["2 times" in entry.why for entry in haystack.dropped] == [True]


@pytest.mark.parametrize(("level", "ids"), [("session", ["s1", "s1"]), ("turn", ["s1_1"] * 2)])
def test_longmemeval_official_items_keep_both_occurrences_of_a_session(
    tmp_path: Path, level: str, ids: list[str]
) -> None:
    old = [{"role": "user", "content": "old\nhat"}, {"role": "assistant", "content": "x"}]
    new = [{"role": "user", "content": "new"}]
    row = _question(haystack_session_ids=["s1", "s1"], haystack_sessions=[old, new])
    haystack = _only(_write(tmp_path / "q.json", [row]), level=level)
    assert [item.id for item in haystack.official_items] == ids
    assert [item.text for item in haystack.official_items] == ["old\nhat", "new"]


def test_longmemeval_official_text_joins_turns_by_a_space(tmp_path: Path) -> None:
    # BM25 splits at spaces only, so that a line end would glue two words together.
    turns = [{"role": "user", "content": text} for text in ("one", "two")]
    row = _question(haystack_sessions=[turns, turns])
    [item, _] = _only(_write(tmp_path / "q.json", [row])).official_items
    assert item.text == "one two"


def test_longmemeval_turns_of_evidence_without_the_answer_are_a_session_of_their_own(
    tmp_path: Path,
) -> None:
    said = {"role": "user", "content": "a heron", "has_answer": True}
    other = {"role": "user", "content": "hello", "has_answer": False}
    row = _question(
        haystack_session_ids=["s1", "s2", "answer_3"],
        haystack_dates=["2023/05/20 (Sat) 02:21"] * 3,
        haystack_sessions=[[other, said], [other], [other]],
    )
    haystack = _only(_write(tmp_path / "q.json", [row]), level="turn")
    assert official_sessions(haystack) == {
        "s1_1": "noans_s1",
        "s1_2": "s1",
        "s2_1": "s2",
        # A session of evidence by its name, whose answer only the assistant gave.
        "answer_3_1": "noans_answer_3",
    }


def test_longmemeval_reports_missing_gold(tmp_path: Path) -> None:
    path = _write(tmp_path / "q.json", [_question(answer_session_ids=["s1", "s9"])])
    assert [entry.why for entry in _only(path).dropped] == ["session s9 does not exist"]


def test_longmemeval_turns_are_the_user_s(tmp_path: Path) -> None:
    haystack = _only(_write(tmp_path / "q.json", [_question()]), level="turn")
    assert [(item.id, item.text) for item in haystack.items] == [("s1_1", "I saw a heron.")]
    assert haystack.queries[0].gold == ("s1_1",)


@pytest.mark.parametrize(
    ("row", "scored"),
    [
        (_question(), True),
        (_question("q1_abs"), False),
        (_question(haystack_sessions=[[_UNSAID], []]), False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("level", ["session", "turn"])
def test_longmemeval_official_metrics_skip_abstentions_and_what_no_user_said(
    tmp_path: Path, row: dict[str, Any], *, scored: bool, level: str
) -> None:
    with PieceReader(_write(tmp_path / "q.json", [row])) as source:
        [haystack] = formats()["longmemeval"].read(source, level=level)
    assert bool(official_gold(haystack)) is scored
    assert haystack.queries[0].abstain is row["question_id"].endswith("_abs")


# --- WMB-100K


def _wmb(folder: Path) -> Path:
    rows = [
        {"turn_id": 7, "speaker": "user", "text": "An echo.", "embedded_facts": []},
        {"turn_id": 7, "speaker": "user", "text": "The fact.", "embedded_facts": ["f1"]},
        {"turn_id": 7, "speaker": "user", "text": "Another echo.", "embedded_facts": []},
        {"turn_id": 8, "speaker": "assistant", "text": "Well.", "embedded_facts": []},
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "datasets").mkdir(parents=True)
    (folder / "documents").mkdir()
    (folder / "datasets" / "pets.jsonl").write_text(lines)
    (folder / "datasets" / "travel.jsonl").write_text(lines.replace("The fact", "The trip"))
    (folder / "documents" / "law.txt").write_text("Law is a set of rules.")
    base = {"gold_answer": "x", "required_memories": [], "gold_turn_ids": []}
    questions = [
        {"id": "pets.S1.1", "category": "pets", "qtype": "S1Situational", "text": "q1"} | base
        | {"gold_turn_ids": [7, 9], "required_memories": ["turn_7: The fact.", "b"]},
        {"id": "pets_law.S3.1", "category": "pets", "category2": "travel", "text": "q2"} | base
        | {"qtype": "S3CrossCategory"},
        {"id": "pets.FM.1", "category": "pets", "qtype": "FalseMemory", "text": "q3"} | base,
        {"id": "law.DOC.S1.1", "category": "law", "qtype": "S1Situational", "text": "q4"} | base,
    ]  # fmt: skip
    _write(folder / "datasets" / "all_questions.json", questions)
    return folder


def test_wmb_part_b_is_one_haystack_of_rows_and_a_turn_means_the_row_that_has_facts(
    tmp_path: Path,
) -> None:
    haystack = _only(_wmb(tmp_path / "wmb"))
    lines = (1, 2, 3, 4)
    names = [f"{name}/{line}" for name in ("pets", "travel") for line in lines]
    assert [item.id for item in haystack.items] == names
    assert haystack.items[1].text == "user: The fact."
    first, cross, probe = haystack.queries
    # The ninth turn is nowhere: a miss that cannot be avoided.
    assert first.gold == ("pets/2", "pets/turn 9")
    assert first.rubric == "turn_7: The fact.\nb"
    assert (cross.gold, cross.tags) == ((), ("pets", "travel"))
    assert probe.abstain
    assert not first.abstain
    assert [(entry.id, entry.why) for entry in haystack.dropped] == [
        ("pets.S1.1", "pets has no turn 9")
    ]


def test_wmb_part_a_is_about_whole_documents(tmp_path: Path) -> None:
    haystack = _only(_wmb(tmp_path / "wmb"), part="A")
    assert [item.text for item in haystack.items] == ["Law is a set of rules."]
    assert [query.id for query in haystack.queries] == ["law.DOC.S1.1"]


def test_wmb_by_category_is_one_haystack_per_category(tmp_path: Path) -> None:
    benchmark = open_benchmark(_wmb(tmp_path / "wmb"), None, {})
    [whole] = benchmark
    benchmark.split_by_category()
    pets, travel = benchmark
    assert (pets.id, travel.id) == ("pets", "travel")
    assert pets.items + travel.items == whole.items
    assert {item.group for item in pets.items} == {"pets"}
    # The question across both categories has no gold, and is asked once, of the first.
    assert (pets.queries, travel.queries) == (whole.queries, ())
    assert (pets.dropped, travel.dropped) == (whole.dropped, ())


def test_wmb_by_category_asks_each_question_of_its_own_category(tmp_path: Path) -> None:
    folder = _wmb(tmp_path / "wmb")
    questions = folder / "datasets" / "all_questions.json"
    questions.write_text(questions.read_text().replace("pets", "travel").replace('"q2"', '"q5"'))
    benchmark = open_benchmark(folder, None, {})
    benchmark.split_by_category()
    pets, travel = benchmark
    assert (pets.queries, len(travel.queries)) == ((), 3)
    assert travel.queries[0].gold == ("travel/2", "travel/turn 9")


def test_only_wmb_has_haystacks_of_categories(tmp_path: Path) -> None:
    path = _write(
        tmp_path / "m.json",
        {
            "name": "m",
            "items": [{"id": "a", "content": "t"}],
            "questions": [{"query": "q", "gold": ["a"]}],
        },
    )
    with pytest.raises(
        UsageError, match="memini has no categories that could be indexed apart"
    ) as caught:
        open_benchmark(path, None, {}).split_by_category()
    assert "--index category is for wmb" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("missing", "part"),
    [("datasets/pets.jsonl", "B"), ("datasets/travel.jsonl", "B"), ("documents/law.txt", "A")],
)
def test_wmb_refuses_a_folder_with_a_missing_file(tmp_path: Path, missing: str, part: str) -> None:
    folder = _wmb(tmp_path / "wmb")
    (folder / "documents" / "art.txt").write_text("Art.")
    (folder / missing).unlink()
    with pytest.raises(UsageError, match=f"the file of '{Path(missing).stem}' is missing"):
        _read(folder, part=part)


def test_wmb_names_the_file_and_the_line_that_is_broken(tmp_path: Path) -> None:
    folder = _wmb(tmp_path / "wmb")
    with (folder / "datasets" / "pets.jsonl").open("a") as file:
        file.write('{"turn_id": 9}\n')
    with pytest.raises(UsageError, match=r"pets\.jsonl: line 5: 'speaker' is missing"):
        _read(folder)


@pytest.mark.parametrize(
    ("ending", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress), (".zst", zstd.compress)]
)
@pytest.mark.parametrize("part", ["A", "B"])
def test_wmb_packed_files_are_read_as_the_plain_ones(
    tmp_path: Path, ending: str, pack: Any, part: str
) -> None:
    plain = _only(_wmb(tmp_path / "wmb"), part=part)
    for path in [*(tmp_path / "wmb").glob("*/*")]:
        path.with_name(path.name + ending).write_bytes(pack(path.read_bytes()))
        path.unlink()
    assert _only(tmp_path / "wmb", part=part) == plain


def test_wmb_a_file_that_exists_packed_and_unpacked_is_rejected(
    tmp_path: Path,
) -> None:
    folder = _wmb(tmp_path / "wmb")
    path = folder / "datasets" / "pets.jsonl"
    path.with_name("pets.jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
    with pytest.raises(UsageError, match=r"pets\.jsonl\.gz: pets\.jsonl exists too"):
        _read(folder)


def test_wmb_a_packed_file_that_is_cut_is_named(tmp_path: Path) -> None:
    folder = _wmb(tmp_path / "wmb")
    path = folder / "datasets" / "pets.jsonl"
    path.with_name("pets.jsonl.gz").write_bytes(gzip.compress(path.read_bytes())[:-6])
    path.unlink()
    with pytest.raises(UsageError, match=r"pets\.jsonl\.gz: .*ended before"):
        _read(folder)


# --- memini


def test_memini_without_groups_is_one_haystack_and_with_them_one_each(tmp_path: Path) -> None:
    items = [{"id": "a", "content": "A"}, {"id": "b", "content": "B"}]
    questions: list[dict[str, Any]] = [{"query": "a?", "gold": ["a", "z"], "answer": 1}]
    path = _write(tmp_path / "m.json", {"name": "mine", "items": items, "questions": questions})
    [haystack] = _read(path)
    assert (haystack.id, len(haystack.items)) == ("mine", 2)
    assert haystack.queries[0].answers == ("1",)
    assert [entry.why for entry in haystack.dropped] == ["no item 'z'"]
    grouped = {
        "items": [{**item, "group": item["id"]} for item in items],
        "questions": [{"query": "b?", "gold": ["b"], "group": "b"}],
    }
    assert [(h.id, len(h.queries)) for h in _read(_write(path, grouped))] == [("a", 0), ("b", 1)]


@pytest.mark.parametrize(
    ("items", "questions", "where"),
    [
        (["g", ""], ["g"], "item 1"),
        (["g", "g"], ["g", ""], "question 1"),
        (["", ""], ["g"], "item 0"),
    ],
)
def test_memini_with_groups_for_some_is_not_all_one_haystack(
    tmp_path: Path, items: list[str], questions: list[str], where: str
) -> None:
    content = {
        "items": [{"id": str(n), "content": "A", "group": g} for n, g in enumerate(items)],
        "questions": [{"query": "?", "gold": ["0"], "group": g} for g in questions],
    }
    with pytest.raises(UsageError, match=f"{where} has no group"):
        _read(_write(tmp_path / "m.json", content))


def test_memini_json_keeps_items_and_questions(tmp_path: Path) -> None:
    path = _write(tmp_path / "q.json", [_question("q1"), _question("q2")])
    written = tmp_path / "m.json"
    written.write_text("".join(memini_json("x", open_benchmark(path, None, {}))), encoding="utf-8")
    before, after = _read(path), _read(written)
    assert [h.id for h in after] == [h.id for h in before] == ["q1", "q2"]
    for one, two in zip(before, after, strict=True):
        assert [item.text for item in two.items] == [item.text for item in one.items]
        [query] = two.queries
        assert query.gold == (f"{one.id}/s1",)
        assert (query.question, query.category) == ("What did I see?", "multi-session")
        assert query.answers == ("3",)


# --- what is refused


@pytest.mark.parametrize(
    ("content", "name", "why"),
    [
        ([_question()], "locomo", "looks like longmemeval, not locomo"),
        (_locomo(_row("D1:1")), "longmemeval", "looks like locomo, not longmemeval"),
        ({"items": [], "questions": []}, "locomo", "looks like memini, not locomo"),
        ([{"a": 1}], None, "looks like none of the known formats"),
        ([{"a": 1}], "locomo", "element 0 is not a LoCoMo conversation"),
        ([], "locomo", "contains no usable question"),
        ([], "longmemeval", "contains no usable question"),
        (_locomo(), None, "contains no usable question"),
        (_locomo(_row("D1:1")) * 2, None, "two haystacks have the id conv-1"),
        (_locomo(_row("D1:1", answer=None)), None, "question 0: 'answer' must be text or a number"),
        (_locomo(_row("D1:1") | {"evidence": "D1:1"}), None, "'evidence' must be a list of texts"),
        (_locomo(_row("D1:1") | {"question": 5}), None, "'question' must be text"),
        (_locomo(_row("D1:1", category=True)), None, "'category' must be a number from 1 to 5"),
        ([_question(answer=["a"])], None, "'answer' must be text or a number"),
        ([_question(answer="\ud800")], None, "'q1' contains an unpaired surrogate"),
        ([_question(answer_session_ids="s1")], None,
         "'answer_session_ids' must be a list of texts"),
        ([_question(question_type=None)], None, "'question_type' must be text"),
        ([_question(haystack_sessions=[[{"role": "user", "content": None}], []])], None,
         "'content' must be text"),
        ([{"question_id": "q"}], "longmemeval", "element 0 is not a LongMemEval question"),
        ([_question(), _question("q2", haystack_dates=[])], None, "question 'q2'"),
        (
            [_question(haystack_sessions=[[{"role": "user"}], []])],
            None,
            "'q1': 'content' is missing",
        ),
        (_locomo({"question": "x", "category": 4}), None, "question 0: 'evidence' is missing"),
        (_locomo(_row("D1:1", category=6)), None, "'category' must be a number from 1 to 5"),
        ([_question(), _question()], None, "two haystacks have the id q1"),
        ([_question(haystack_session_ids=[], haystack_dates=[], haystack_sessions=[])], None,
         "q1: the haystack is empty"),
        ([_question(question="\ud800")], None, "'q1' contains an unpaired surrogate"),
        ({"items": [{"id": "a", "content": "A"}] * 2, "questions": []}, None, "in two items"),
        ({"items": [], "questions": []}, None, "items"),
        ({"items": [{"id": "a"}], "questions": []}, None, "items.0.content"),
        ({"items": [{"id": "a", "content": "A", "group": "g"}],
          "questions": [{"query": "q", "gold": ["a"], "group": "h"}]}, None, "the group 'h'"),
    ],
)  # fmt: skip
def test_invalid_benchmarks_are_refused_by_name(
    tmp_path: Path, content: object, name: str | None, why: str
) -> None:
    path = _write(tmp_path / "x.json", content)
    with pytest.raises(UsageError) as error:
        _read(path, name)
    assert str(path) in error.value.message
    assert why in error.value.message


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"part": "B"}, "longmemeval has no --part"),
        ({"level": "word"}, "longmemeval has no --level word"),
        ({"session_doc": "half"}, "longmemeval has no --session-doc half"),
        ({"level": "turn", "session_doc": "full"}, "--session-doc needs --level session"),
    ],
)
def test_an_option_that_a_format_has_not_is_refused(
    tmp_path: Path, options: dict[str, str], why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        open_benchmark(_write(tmp_path / "q.json", [_question()]), None, options)


def test_an_option_without_effect_is_not_recorded(tmp_path: Path) -> None:
    path = _write(tmp_path / "q.json", [_question()])
    assert open_benchmark(path, None, {"level": "turn"}).options == {"level": "turn"}
    assert open_benchmark(path, None, {}).options == {"level": "session", "session_doc": "full"}


@pytest.mark.parametrize("content", [b"", b'[{"question_id": "q', b'[{"a": NaN}]'])
def test_a_file_that_is_broken_at_the_start_is_reported_as_broken(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="at byte"):
        open_benchmark(path, None, {})


def test_a_missing_path_or_format_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        open_benchmark(tmp_path / "none.json", None, {})
    with pytest.raises(UsageError, match="no format 'locom'"):
        open_benchmark(_write(tmp_path / "x.json", []), "locom", {})


def test_the_digest_is_known_once_a_file_was_read_to_its_end(tmp_path: Path) -> None:
    benchmark = open_benchmark(_write(tmp_path / "q.json", [_question()]), None, {})
    assert not benchmark.sha256
    list(benchmark)
    assert benchmark.sha256 == _sha256((tmp_path / "q.json").read_bytes())


# --- another package's format


def _mine(source: PieceReader) -> Iterator[Haystack]:
    while source.read():
        pass
    yield Haystack("h", (Item("i", "text"),), (Question("q", "?", "c", ("i",)),))


MINE = Format("mine", "one that a package brings", _mine, lambda _: True, {})


@pytest.fixture
def brought(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    point = SimpleNamespace(name="mine", value="elsewhere:MINE", load=lambda: MINE)
    named = {benchmarks.ENTRY_POINTS: [point]}
    monkeypatch.setattr(benchmarks, "entry_points", lambda group: named[group])
    formats.cache_clear()
    yield
    formats.cache_clear()


@pytest.mark.usefixtures("brought")
def test_an_entry_point_adds_a_format(tmp_path: Path) -> None:
    path = tmp_path / "x.mine"
    path.write_text("anything")
    benchmark = open_benchmark(path, None, {})
    assert benchmark.format is MINE
    assert [haystack.id for haystack in benchmark] == ["h"]
    # What is ours by its look may be theirs too, if that is asked for.
    ours = _write(tmp_path / "q.json", [_question()])
    assert open_benchmark(ours, None, {}).format.name == "longmemeval"
    assert open_benchmark(ours, "mine", {}).format is MINE


def test_a_question_that_is_blank_is_refused_before_it_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "blank.json"
    items = [{"id": "a", "content": "text"}]
    path.write_text(json.dumps({"items": items, "questions": [{"query": " ", "gold": ["a"]}]}))
    with pytest.raises(UsageError, match="the question #0 is blank"):
        list(open_benchmark(path, None, {}))


def test_json_that_nests_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text("[" * 100_000)
    with pytest.raises(UsageError, match="nests too deeply"):
        open_benchmark(path, None, {})
