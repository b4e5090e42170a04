"""Histories of any length around the evidence of a question."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from memconform.datasets.benchmarks import open_benchmark
from memconform.datasets.haystacks import DroppedEntry
from memconform.errors import UsageError
from memconform.longmemeval.history import FillerPool, Shape, compiled
from memconform.longmemeval.history_sources import Sources, cases

_ALL = Shape(min_filler=3, max_filler=3)


def _write(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def _turn(content: str = "x" * 10, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": content} | more


def _row(name: str = "q1", evidence: tuple[str, ...] = ("answer_e",), **more: Any) -> Any:
    return {
        "question_id": name,
        "question_type": "multi-session",
        "question": "What did I see?",
        "answer": 3,
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_dates": ["2023/05/20 (Sat) 02:21"] * len(evidence),
        "haystack_session_ids": list(evidence),
        "haystack_sessions": [[_turn("A heron.", has_answer=True)] for _ in evidence],
        "answer_session_ids": list(evidence),
    } | more


def _filler(*names: str) -> Any:
    """A LongMemEval file of one question, whose other sessions these are."""
    ids = ["answer_other", *names]
    return [
        _row(
            "other",
            haystack_session_ids=ids,
            haystack_dates=["2022/01/01 (Sat) 00:00"] * len(ids),
            haystack_sessions=[[_turn(f"I am {name}.", has_answer=True)] for name in ids],
            answer_session_ids=["answer_other"],
        )
    ]


_NAMES = [f"f{number}" for number in range(40)]


def _sources(folder: Path, *rows: Any, filler: Any = None) -> Sources:
    evidence = _write(folder / "evidence.json", list(rows or [_row()]))
    given = _filler(*_NAMES) if filler is None else filler
    return Sources(evidence, [_write(folder / "filler.json", given)])


def _rows(sources: Sources, shape: Shape = _ALL) -> list[Any]:
    with FillerPool() as pool:
        return [
            case if isinstance(case, DroppedEntry) else compiled(case, pool, shape).row
            for case in cases(sources, pool)
        ]


def _moments(row: Any) -> list[datetime]:
    return [_moment(day) for day in row["haystack_dates"]]


def _moment(day: str) -> datetime:
    return datetime.strptime(day, "%Y/%m/%d (%a) %H:%M")  # noqa: DTZ007 - it has no zone


def test_a_history_is_the_evidence_among_fillers_in_the_order_of_their_dates(
    tmp_path: Path,
) -> None:
    later = ["2023/05/25 (Thu) 10:00", "2023/05/21 (Sun) 10:00"]
    sources = _sources(tmp_path, _row(evidence=("answer_b", "answer_a"), haystack_dates=later))
    [row] = _rows(sources, Shape(20, 20))
    by_name = dict(zip(row["haystack_session_ids"], row["haystack_dates"], strict=True))
    assert len(by_name) == 22
    assert [by_name["answer_b"], by_name["answer_a"]] == later
    assert "answer_other" not in by_name
    moments, asked = _moments(row), _moment(row["question_date"])
    assert moments == sorted(moments)
    assert (moments[0] - _moment(later[1])).days >= -30
    assert moments[-1] < asked == _moment("2023/05/30 (Tue) 23:40")
    assert row["answer_session_ids"] == ["answer_b", "answer_a"]
    assert row["answer"] == 3


def test_fillers_are_whole_sessions_that_hold_no_answer(tmp_path: Path) -> None:
    [row] = _rows(_sources(tmp_path))
    named = dict(zip(row["haystack_session_ids"], row["haystack_sessions"], strict=True))
    assert named.pop("answer_e") == [_turn("A heron.", has_answer=True)]
    assert len(named) == 3
    for name, turns in named.items():
        assert turns == [_turn(f"I am {name}.")]


def test_the_number_of_fillers_is_drawn_between_the_least_and_the_most(tmp_path: Path) -> None:
    rows = _rows(_sources(tmp_path, *(_row(f"q{n}") for n in range(60))), Shape(2, 5))
    assert {len(row["haystack_session_ids"]) - 1 for row in rows} == {2, 3, 4, 5}


def test_the_seed_and_the_id_of_a_question_say_what_its_history_is(tmp_path: Path) -> None:
    both = _rows(_sources(tmp_path, _row("q1"), _row("q2")), Shape(3, 9, seed=5))
    assert _rows(_sources(tmp_path, _row("q2")), Shape(3, 9, seed=5)) == both[1:]
    assert _rows(_sources(tmp_path, _row("q2")), Shape(3, 9, seed=6)) != both[1:]
    assert both[0]["haystack_session_ids"] != both[1]["haystack_session_ids"]


def test_a_history_is_the_same_in_every_release(tmp_path: Path) -> None:
    [row] = _rows(_sources(tmp_path), Shape(2, 4, seed=1))
    assert dict(zip(row["haystack_session_ids"], row["haystack_dates"], strict=True)) == {
        "f31": "2023/04/25 (Tue) 02:20",
        "f0": "2023/04/25 (Tue) 23:50",
        "f32": "2023/05/16 (Tue) 03:29",
        "answer_e": "2023/05/20 (Sat) 02:21",
    }


def test_fillers_are_dropped_until_the_length_fits(tmp_path: Path) -> None:
    # The evidence has 8 characters, and a filler 8 or 9.
    with FillerPool() as pool:
        [case] = cases(_sources(tmp_path), pool)
        assert not isinstance(case, DroppedEntry)
        history = compiled(case, pool, Shape(10, 10, max_chars=40))
    said = [turn["content"] for turns in history.row["haystack_sessions"] for turn in turns]
    assert "A heron." in said
    assert 31 < sum(map(len, said)) <= 40
    assert (history.fillers, history.left_out) == (len(said) - 1, 11 - len(said))


def test_evidence_is_never_dropped_to_fit_the_length(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="evidence of question 'q1' has 8 characters"):
        _rows(_sources(tmp_path), Shape(1, 1, max_chars=7))


@pytest.mark.parametrize(
    ("evidence", "about_it", "others"),
    [
        ("answer_ab12cd34_1", ("ab12cd34_1", "ab12cd34_2", "ab12cd34", "ab12cd34_abs_1"), "f1"),
        ("answer_ab12cd34_abs_1", ("ab12cd34_2",), "ab12cd35_2"),
        ("answer_sharegpt_Xy_0", ("sharegpt_Xy_0", "sharegpt_Xy_7"), "sharegpt_Xz_0"),
        ("answer_ultrachat_17", ("ultrachat_17",), "ultrachat_18"),
        ("mine_1", ("mine_1",), "mine_2"),
    ],
)
def test_evidence_of_the_question_is_never_its_filler(
    tmp_path: Path, evidence: str, about_it: tuple[str, ...], others: str
) -> None:
    sources = _sources(tmp_path, _row(evidence=(evidence,)), filler=_filler(*about_it, others))
    [row] = _rows(sources, Shape(1, 1))
    assert set(row["haystack_session_ids"]) == {evidence, others}
    with pytest.raises(UsageError, match="needs 2 filler sessions, but only 1"):
        _rows(sources, Shape(2, 2))


def test_compiled_histories_are_a_longmemeval_file(tmp_path: Path) -> None:
    path = _write(tmp_path / "made.json", _rows(_sources(tmp_path, _row("a"), _row("b_abs"))))
    benchmark = open_benchmark(path, None, {})
    assert benchmark.format.name == "longmemeval"
    haystacks = list(benchmark)
    assert [len(haystack.items) for haystack in haystacks] == [4, 4]
    assert haystacks[0].queries[0].gold == ("answer_e",)
    assert haystacks[1].queries[0].abstain
    assert not any(haystack.dropped for haystack in haystacks)


# --- the parts that were released


def _entry(name: str, **more: Any) -> dict[str, Any]:
    return {"session_id": name, "human_valid_label": True} | more


def _asked(name: str, task: str, *, about: str = "bg1", **content: Any) -> dict[str, Any]:
    return {
        "question_id": name,
        "question_type": task,
        "background_id": about,
        "sessions": [
            {"session_id": f"long_{name}", "style": "long"},
            {"session_id": name, "style": "neutral"},
        ],
        "question_content": {"question": f"{name}?", "answer": "x"} | content,
    }


def _released(
    folder: Path, questions: list[Any], sessions: list[Any], attributes: Any = None
) -> Sources:
    filler = [_entry(f"sharegpt_{n}_0", session=[_turn()]) for n in "abcdefgh"]
    return Sources(
        _write(folder / "questions.json", questions),
        [_write(folder / "filler.json", filler)],
        _write(folder / "sessions.json", sessions),
        None if attributes is None else _write(folder / "attributes.json", attributes),
    )


_OLD, _NEW = [_turn("old")], [_turn("new")]


@pytest.mark.parametrize(
    ("task", "entry", "official", "ids"),
    [
        ("single_hop", {"session": _OLD}, "single-session-user", ["answer_k"]),
        ("implicit_preference_v2", {"session": _OLD}, "single-session-preference", ["answer_k"]),
        ("two_hop", {"session_1": _OLD, "session_2": _NEW}, "multi-session",
         ["answer_k_1", "answer_k_2"]),
        ("multi_session_synthesis", {"sessions": [_OLD, _NEW]}, "multi-session",
         ["answer_k_1", "answer_k_2"]),
        ("knowledge_update", {"session_old": _OLD, "session_new": _NEW}, "knowledge-update",
         ["answer_k_1", "answer_k_2"]),
        ("knowledge_update", {"old_session": _OLD, "new_session": _NEW}, "knowledge-update",
         ["answer_k_1", "answer_k_2"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("content", [{}, {"unified_date": "2023/5/9"}])
def test_evidence_of_the_released_parts(
    tmp_path: Path, task: str, entry: Any, official: str, ids: list[str], content: Any
) -> None:
    sources = _released(tmp_path, [_asked("k", task, **content)], [_entry("k", **entry)])
    [row] = _rows(sources)
    assert (row["question_type"], row["answer_session_ids"]) == (official, ids)
    assert len(row["haystack_session_ids"]) == 3 + len(ids)
    # Without other dates sessions stay in their order, and the question comes on the same day.
    places = [row["haystack_session_ids"].index(name) for name in ids]
    assert places == sorted(places)
    days = [row["haystack_dates"][place] for place in places]
    assert days[-1] <= row["question_date"]
    assert days[-1][:10] == row["question_date"][:10]
    if content:
        assert {day[:10] for day in days} == {"2023/05/09"}
    assert _moments(row) == sorted(_moments(row))


def test_dates_of_the_released_questions_are_kept(tmp_path: Path) -> None:
    facts = [{"date": "2023/4/2"}, {"date": "2023/03/01"}]
    update = {"fact_1_date": "2023/01/02", "fact_2_date": "2023/02/03"}
    questions = [
        _asked("t", "temp_reasoning_implicit", facts=facts, question_date="2023/06/07"),
        _asked("u", "knowledge_update", temporal_constraint=update, question_date="2023/02/03"),
    ]
    sessions = [_entry(name, sessions=[_OLD, _NEW]) for name in "tu"]
    first, second = _rows(_released(tmp_path, questions, sessions))
    days = dict(zip(first["haystack_session_ids"], first["haystack_dates"], strict=True))
    assert days["answer_t_1"].startswith("2023/04/02 (Sun)")
    assert days["answer_t_2"].startswith("2023/03/01 (Wed)")
    assert first["question_date"].startswith("2023/06/07 (Wed)")
    days = dict(zip(second["haystack_session_ids"], second["haystack_dates"], strict=True))
    # Asked on the day of the last fact: after it.
    assert "2023/02/03" < days["answer_u_2"] <= second["question_date"] < "2023/02/04"


def test_a_question_without_human_checked_evidence_is_reported(tmp_path: Path) -> None:
    questions = [_asked("k", "single_hop"), _asked("said", "assistant_previnfo")]
    sessions = [_entry("k", session=_OLD) | {"human_valid_label": False}]
    sources = _released(tmp_path, questions, sessions)
    _write(sources.fillers[0], [{"session_id": n, "session": _OLD} for n in ("said", *_NAMES)])
    unchecked, said = _rows(sources)
    assert unchecked == DroppedEntry("k", "no human-checked session answers it")
    assert said["answer_session_ids"] == ["answer_said"]


@pytest.mark.parametrize("attributes", [True, False])
def test_sessions_about_the_same_attribute_are_no_filler(
    tmp_path: Path, *, attributes: bool
) -> None:
    questions = [_asked("k", "single_hop", about="bg1"), _asked("m", "single_hop", about="bg2")]
    sessions = [
        _entry("k", session=_OLD, question_id="k"),
        _entry("same", session=_OLD, question_id="k"),
        _entry("near", session=_OLD, question_id="m"),
        _entry("m", session=_OLD, question_id="m"),
        _entry("far", session=_OLD, question_id="unknown"),
    ]
    backgrounds = [{"background_id": "bg1"}, {"background_id": "bg2"}]
    known = [{"attribute_id": 4, "backgrounds": backgrounds}] if attributes else None
    sources = _released(tmp_path, questions, sessions, known)
    _write(sources.fillers[0], [])
    [row, _] = _rows(sources, Shape(1, 1)) if attributes else _rows(sources, Shape(3, 3))
    expected = {"far"} if attributes else {"far", "near", "m"}
    assert set(row["haystack_session_ids"]) == {"answer_k", *expected}


# --- what is refused


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (_row(answer_session_ids=["answer_z"]), "element 0: 'answer_z' is missing"),
        (_row(answer_session_ids=[]), "element 0: no session answers it"),
        (_row(question_date="May"), "'May' is not a date"),
        (_row(haystack_dates=["2023/02/30 (Thu) 02:21"]), "element 0: day"),
        (_row(haystack_dates=[]), "element 0: 1 haystack_sessions, but 0 haystack_dates"),
        (_row(question=None), "'question' must be text"),
        (_row(answer=None), "'answer' must be text or a number"),
        (_row(haystack_sessions=[[{"role": "user"}]]), "element 0: 'content' is missing"),
        (_row(haystack_sessions=[[_turn("\ud800")]]), "element 0: .*surrogates not allowed"),
        ({"question_id": "q"}, "element 0: 'haystack_session_ids' is missing"),
        (7, "element 0: is not an object"),
    ],
)
def test_invalid_evidence_is_reported(tmp_path: Path, row: Any, why: str) -> None:
    with pytest.raises(UsageError, match=why) as error:
        _rows(_sources(tmp_path, row))
    assert "evidence.json" in error.value.message


@pytest.mark.parametrize(
    ("filler", "why"),
    [
        ([{"session_id": "f"}], "element 0: 'sessions' is missing"),
        ([{"session": []}], "element 0: 'session_id' is missing"),
        (
            [{"session_id": "f", "session": [{"role": "user", "content": 1}]}],
            "'content' must be text",
        ),
        ([_row(), 3], "element 1: is not an object"),
        ({"session_id": "f"}, "element 0: 'sessions' is missing"),
        (7, "is neither a JSON array nor JSON lines"),
    ],
)
def test_an_invalid_filler_is_reported(tmp_path: Path, filler: Any, why: str) -> None:
    with pytest.raises(UsageError, match=why) as error:
        _rows(_sources(tmp_path, filler=filler))
    assert "filler.json" in error.value.message


@pytest.mark.parametrize(
    ("question", "why"),
    [
        (_asked("k", "riddle"), "task 'riddle' does not exist"),
        (_asked("k", "temp_reasoning_implicit"), "'facts' is missing"),
        (_asked("k", "temp_reasoning_implicit", facts=[]), "1 sessions, but 0 dates"),
        (_asked("k", "single_hop", unified_date="soon"), "'soon' is not a date"),
        ({"question_id": "k", "question_content": {}}, "'background_id' is missing"),
    ],
)
def test_an_invalid_released_question_is_reported(tmp_path: Path, question: Any, why: str) -> None:
    with pytest.raises(UsageError, match=f"element 0: .*{why}"):
        _rows(_released(tmp_path, [question], [_entry("k", session=_OLD)]))


def test_a_repeated_question_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="element 1: the question 'q1' occurs twice"):
        _rows(_sources(tmp_path, _row(), _row()))


def test_evidence_needs_its_sessions_if_they_are_elsewhere(tmp_path: Path) -> None:
    given = _released(tmp_path, [_asked("k", "single_hop")], [_entry("k", session=_OLD)])
    with pytest.raises(UsageError, match="does not contain its evidence"):
        _rows(Sources(given.evidence, given.fillers))
    own = _sources(tmp_path)
    with pytest.raises(UsageError, match="already contains its evidence"):
        _rows(Sources(own.evidence, own.fillers, given.sessions))
