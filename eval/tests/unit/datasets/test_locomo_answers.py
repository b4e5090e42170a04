"""Stored answers to LoCoMo, in the forms of other programs."""

import json
from pathlib import Path
from typing import Any

import pytest

from memconform.bench.qa.plan import AnswerSelection
from memconform.datasets.answer_keys import AnswerKey, read_answer_key
from memconform.datasets.locomo_answers import read_locomo_answers
from memconform.errors import UsageError
from memconform.reports.qa import suspicions

_ASKED = {
    "conv-1": ["Where is the boat?", "Who has the key?", "Where is the boat?", "Who sang?"],
    "conv-9": ["When did it rain?", "Who sang?"],
}


def _question(text: str, number: int) -> dict[str, Any]:
    row: dict[str, Any] = {"question": text, "evidence": ["D1:1"], "category": 4}
    if number == 3:
        return row | {"category": 5, "adversarial_answer": "Tom"}
    return row | {"answer": f"answer {number}"}


@pytest.fixture
def key(tmp_path: Path) -> AnswerKey:
    turns = [{"speaker": "Ana", "dia_id": "D1:1", "text": "Hello."}]
    conversation = {"session_1": turns, "session_1_date_time": "1:00 pm on 8 May, 2023"}
    samples = [
        {
            "sample_id": name,
            "conversation": conversation,
            "qa": [_question(text, number) for number, text in enumerate(texts)],
        }
        for name, texts in _ASKED.items()
    ]
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps(samples))
    return read_answer_key(path, "locomo")


def _write(folder: Path, value: object, *, indent: int | None = None) -> Path:
    path = folder / "answers.json"
    path.write_text(json.dumps(value, indent=indent), encoding="utf-8")
    return path


def _mem0(**more: object) -> dict[str, list[dict[str, Any]]]:
    """Results as mem0's evaluation writes them: conversations by number."""
    return {
        str(number): [
            {
                **_question(text, row),
                "response": f"{name} says {row}",
                "speaker_1_memories": [{"memory": "m", "score": 0.5}],
                "response_time": 1.5,
                **more,
            }
            for row, text in enumerate(texts)
        ]
        for number, (name, texts) in enumerate(_ASKED.items())
    }


_ALL = {
    f"{name}#{n}": f"{name} says {n}" for name, texts in _ASKED.items() for n in range(len(texts))
}


@pytest.mark.parametrize("indent", [None, 4])
def test_results_of_mem0_are_read(tmp_path: Path, key: AnswerKey, indent: int | None) -> None:
    """Questions repeat inside a conversation, and between conversations."""
    read = read_locomo_answers(_write(tmp_path, _mem0(), indent=indent), key)
    assert (read.answers, read.prediction, len(read.sha256)) == (_ALL, None, 64)


def test_scores_of_mem0_lack_a_category_and_have_strings_for_numbers(
    tmp_path: Path, key: AnswerKey
) -> None:
    scores = {
        name: [row | {"category": str(row["category"]), "llm_score": 1} for row in rows]
        for name, rows in _mem0().items()
    }
    for rows in scores.values():
        rows[:] = [row for row in rows if row["category"] != "5"]
    read = read_locomo_answers(_write(tmp_path, scores, indent=4), key)
    assert read.answers == {name: text for name, text in _ALL.items() if name != "conv-1#3"}


@pytest.mark.parametrize(
    "names", [("conv-1", "conv-9"), ("user_0", "user_1"), ("x", "y"), ("7", "8")]
)
def test_a_conversation_is_named_by_id_number_or_its_questions(
    tmp_path: Path, key: AnswerKey, names: tuple[str, str]
) -> None:
    renamed = dict(zip(names, _mem0().values(), strict=True))
    assert read_locomo_answers(_write(tmp_path, renamed), key).answers == _ALL


def _predictions(*models: str) -> list[dict[str, Any]]:
    """Samples as LoCoMo's own code writes them."""
    return [
        {
            "sample_id": name,
            "qa": [
                _question(text, row)
                | {f"{model}_prediction": f"{name} says {row}" for model in models}
                | {f"{model}_f1": 0.5 for model in models}
                | {f"{model}_prediction_context": ["D1:1"] for model in models}
                for row, text in enumerate(texts)
            ],
        }
        for name, texts in _ASKED.items()
    ]


def test_predictions_of_locomos_code_are_read(tmp_path: Path, key: AnswerKey) -> None:
    read = read_locomo_answers(_write(tmp_path, _predictions("gpt-4"), indent=2), key)
    assert (read.answers, read.prediction) == (_ALL, "gpt-4_prediction")


def test_a_file_of_one_conversation_is_read(tmp_path: Path, key: AnswerKey) -> None:
    [_, last] = _predictions("gpt-4")
    read = read_locomo_answers(_write(tmp_path, last, indent=2), key)
    assert read.answers == {name: text for name, text in _ALL.items() if name[:6] == "conv-9"}


def test_an_interrupted_file_has_fewer_answers(tmp_path: Path, key: AnswerKey) -> None:
    samples = _predictions("gpt-4")
    del samples[0]["qa"][1]["gpt-4_prediction"]
    read = read_locomo_answers(_write(tmp_path, samples), key)
    assert _ALL.keys() - read.answers.keys() == {"conv-1#1"}


def test_of_several_models_one_is_named(tmp_path: Path, key: AnswerKey) -> None:
    samples = _predictions("gpt-4", "gpt-4_dialog_top_5")
    samples[0]["qa"][0]["gpt-4_prediction"] = "In Orn."
    path = _write(tmp_path, samples)
    with pytest.raises(UsageError, match="predictions of 2 models: gpt-4_prediction, gpt-4_dialog"):
        read_locomo_answers(path, key)
    for name in ("gpt-4", "gpt-4_prediction"):
        assert read_locomo_answers(path, key, name).answers["conv-1#0"] == "In Orn."
    with pytest.raises(UsageError, match="no prediction 'claude'") as caught:
        read_locomo_answers(path, key, "claude")
    assert caught.value.code == "bad_option"
    with pytest.raises(UsageError, match="no prediction 'gpt-4'"):
        read_locomo_answers(_write(tmp_path, _mem0()), key, "gpt-4")


def test_a_question_that_the_benchmark_does_not_have_keeps_its_place(
    tmp_path: Path, key: AnswerKey
) -> None:
    results = _mem0()
    results["1"][0]["question"] = "Who is it?"
    answers = read_locomo_answers(_write(tmp_path, results), key).answers
    assert answers.keys() - _ALL.keys() == {"1, row 0: Who is it?"}
    assert _ALL.keys() - answers.keys() == {"conv-9#0"}


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"response": None}, "conversation '0', row 0: 'response' must be text"),
        ({"question": 7}, "conversation '0': 'question' must be text"),
    ],
)
def test_a_bad_row_is_named(
    tmp_path: Path, key: AnswerKey, change: dict[str, object], fault: str
) -> None:
    with pytest.raises(UsageError, match=fault) as caught:
        read_locomo_answers(_write(tmp_path, _mem0(**change)), key)
    assert caught.value.code == "dataset_invalid"


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ('{\n "0": [\n  {"question": "Who', "is not valid JSON"),
        ('{"0": ["x"]}', "conversation '0', row 0 is not a JSON object"),
        (
            '{"0": [{"question": "Who has the key?"}]}',
            "no row has a response, or a key …_prediction",
        ),
        ('{"0": []}', "has no answers"),
        ("[]", "holds no answer"),
        ('{"items": 7}', "line 1: 'question_id' is missing"),
        ('{"0": \ud83d}', "line 1"),
        ("[" * 100_000, "nests too deeply"),
    ],
)
def test_a_file_of_another_form_is_refused(
    tmp_path: Path, key: AnswerKey, content: str, fault: str
) -> None:
    path = tmp_path / "answers.json"
    path.write_text(content, encoding="utf-8", errors="replace")
    with pytest.raises(UsageError, match=fault):
        read_locomo_answers(path, key)


def test_lines_and_arrays_of_hypotheses_are_read_as_before(tmp_path: Path, key: AnswerKey) -> None:
    rows = [{"question_id": name, "hypothesis": text} for name, text in _ALL.items()]
    assert read_locomo_answers(_write(tmp_path, rows), key).answers == _ALL
    lines = tmp_path / "lines.jsonl"
    lines.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert read_locomo_answers(lines, key).answers == _ALL


def test_reasoning_is_counted_and_stripped(tmp_path: Path, key: AnswerKey) -> None:
    """Answers behind `<think>` blocks scored 74.4 in place of 97.5, without a notice."""
    texts = ["<think>Brel or Orn?</think>In Brel.", "Ana.", "<think>It may be Brel, bec"]
    rows = [{"question_id": f"conv-1#{n}", "hypothesis": text} for n, text in enumerate(texts)]
    read = read_locomo_answers(_write(tmp_path, rows), key)

    def notices(selection: AnswerSelection, *, stripped: bool) -> list[str]:
        return list(suspicions(selection.answer_file(), stripped=stripped))

    kept = AnswerSelection(key, read, partial=True, disputed=None)
    [notice] = notices(kept, stripped=False)
    assert "as a part of the answer: 2 answers; --strip-reasoning" in notice
    assert (kept.errors, kept.settings({}).strip_reasoning) == ({}, False)
    stripped = AnswerSelection(key, read.without_reasoning(), partial=True, disputed=None)
    assert stripped.hypotheses.answers["conv-1#0"] == "In Brel."
    [notice] = notices(stripped, stripped=True)
    assert notice.endswith("(<think>…</think>): 2 answers")
    assert stripped.errors == {"conv-1#2": "reasoning without an answer behind it"}
    assert stripped.settings({}).strip_reasoning


def test_reasoning_alone_is_listed_as_not_measured_and_not_as_empty_too(
    tmp_path: Path, key: AnswerKey
) -> None:
    rows = [
        {"question_id": f"conv-1#{n}", "hypothesis": f"<think>{n}, bec" if n else " "}
        for n in range(3)
    ]
    read = read_locomo_answers(_write(tmp_path, rows), key).without_reasoning()
    answers = AnswerSelection(key, read, partial=True, disputed=None).answer_file()
    assert answers.empty == 1
    assert answers.same_text is None
    assert list(answers.errors) == ["conv-1#1", "conv-1#2"]
    assert len([line for line in suspicions(answers, stripped=True) if "empty" in line]) == 1


def test_the_same_text_in_two_categories_is_two_questions(tmp_path: Path) -> None:
    """An abstention from the one was scored as a wrong answer to the other."""
    turns = [{"speaker": "Ana", "dia_id": "D1:1", "text": "Hello."}]
    rows: list[dict[str, Any]] = [
        {"question": "What won Ana?", "evidence": ["D1:1"], "category": 4, "answer": "a cup"},
        {"question": "What won Ana?", "evidence": ["D1:1"], "category": 5},
    ]
    rows[1]["adversarial_answer"] = "a ring"
    sample = {
        "sample_id": "conv-1",
        "conversation": {"session_1": turns, "session_1_date_time": "1:00 pm on 8 May, 2023"},
        "qa": rows,
    }
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps([sample]))
    answered = {"0": [{**rows[1], "category": "5", "response": "No information available"}]}
    hypotheses = read_locomo_answers(
        _write(tmp_path, answered), read_answer_key(path, "locomo"), None
    )
    assert hypotheses.answers.keys() == {"conv-1#1"}


def test_the_number_of_a_conversation_counts_only_if_its_questions_do(
    key: AnswerKey, tmp_path: Path
) -> None:
    """One question that two conversations share bound the rows of the one to the other."""
    texts = _ASKED["conv-1"]
    rows = [{"question": text, "response": f"{n}"} for n, text in enumerate(texts)]
    hypotheses = read_locomo_answers(_write(tmp_path, {"1": rows}), key, None)
    assert hypotheses.answers.keys() == {f"conv-1#{n}" for n in range(len(texts))}
