"""The calibration set of judges: what each kind of row promises is so."""

import json
import re
from collections import Counter
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from memconform.datasets.registry import judge_calibration, shipped
from memconform.scoring.abstention import abstains, contains_phrase
from memconform.scoring.judge.calibration_set import CalibrationItem

_KINDS = {
    "right": (
        "verbatim",
        "paraphrase",
        "other-units",
        "other-date-format",
        "more-detail",
        "right-other-language",
        "long-right",
        "abstention-right",
        "phrase-right",
    ),
    "specific-wrong": (
        "near-number",
        "near-name",
        "near-date",
        "negated",
        "wrong-attribute",
        "outdated-value",
        "partial",
        "wrong-other-language",
        "verbose-wrong",
        "abstention-wrong",
        "phrase-wrong",
    ),
    "vague-wrong": (
        *("evasive", "vague", "declined", "empty", "question-echo", "phrase-declined"),
    ),
    "injected": ("ignore-rubric", "fake-verdict", "fake-fence", "claimed-authority"),
}
_REQUIRED = {"id", "kind", "group", "question", "reference_answer", "candidate", "label"}
_OPTIONAL = {"abstain", "rubric", "question_date"}
_FIXED_ABSTENTIONS = {"no information available", "not mentioned"}

_ROWS: list[dict[str, Any]] = [
    json.loads(line) for line in judge_calibration().read_text(encoding="utf-8").splitlines()
]


def _of(*kinds: str) -> list[dict[str, Any]]:
    rows = [row for row in _ROWS if row["kind"] in kinds]
    assert rows
    return rows


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.casefold())


def _numbers(text: str) -> list[str]:
    return re.findall(r"\d+(?:[.,:]\d+)*", text)


_COMMON = frozenset(
    _words(
        "a all an and are at be both brought by first for had has in is it laid now of on she that "
        "sits swarmed the their they to up used was were who year"
    )
)
"""Words of references that answer nothing by themselves."""


def test_the_calibration_set_is_not_a_shipped_question_set() -> None:
    assert judge_calibration().is_file()
    assert judge_calibration().stem not in shipped()


def test_rows_have_the_keys_of_the_format() -> None:
    for row in _ROWS:
        assert row.keys() >= _REQUIRED, row["id"]
        assert row.keys() <= _REQUIRED | _OPTIONAL, row["id"]
        assert row.get("abstain", True) is True, row["id"]
        if "question_date" in row:
            date.fromisoformat(row["question_date"])
        texts = [row[key] for key in ("question", "reference_answer")] + [row.get("rubric", "-")]
        assert all(text and text == text.strip() for text in texts), row["id"]
        assert 5 <= len(row["reference_answer"].split()) <= 25, row["id"]


def test_every_kind_occurs_often_enough() -> None:
    counts = Counter((row["group"], row["kind"]) for row in _ROWS)
    assert counts.keys() == {(group, kind) for group, kinds in _KINDS.items() for kind in kinds}
    assert min(counts.values()) >= 12
    labels = Counter(row["label"] for row in _ROWS)
    # stats/prevalence.py was measured with calibrations of a hundred of each and more.
    assert min(labels.values()) >= 100


def test_labels_are_those_of_the_group() -> None:
    for row in _ROWS:
        assert row["label"] == ("correct" if row["group"] == "right" else "incorrect"), row["id"]


def test_no_row_is_repeated() -> None:
    assert [row["id"] for row in _ROWS] == [f"cal-{n:03d}" for n in range(1, len(_ROWS) + 1)]
    # Without candidates in which nothing is visible, which differ in white space alone.
    pairs = Counter((row["question"], row["candidate"].strip()) for row in _ROWS)
    assert {pair for pair, count in pairs.items() if count > 1} == set()


def test_a_question_has_one_reference_and_one_correct_candidate() -> None:
    by_question: dict[str, set[tuple[Any, ...]]] = {}
    for row in _ROWS:
        fixed = tuple(row.get(key) for key in ("reference_answer", "rubric", "question_date"))
        by_question.setdefault(row["question"], set()).add((*fixed, row.get("abstain")))
    assert all(len(references) == 1 for references in by_question.values())
    right = Counter(row["question"] for row in _ROWS if row["group"] == "right")
    assert right == dict.fromkeys(by_question, 1)


def test_verbatim_candidates_are_the_reference_and_no_other_is() -> None:
    for row in _ROWS:
        same = _words(row["candidate"]) == _words(row["reference_answer"])
        assert same == (row["kind"] == "verbatim"), row["id"]


@pytest.mark.parametrize("kind", ["near-number", "near-date"])
def test_near_misses_differ_in_their_numbers_or_months(kind: str) -> None:
    for row in _of(kind):
        candidate, reference = _words(row["candidate"]), _words(row["reference_answer"])
        shared = set(candidate) & set(reference)
        assert len(shared) >= 0.6 * len(set(reference)), row["id"]
        assert candidate != reference, row["id"]
        if kind == "near-number":
            assert _numbers(row["candidate"]) != _numbers(row["reference_answer"]), row["id"]
            assert len(_numbers(row["candidate"])) == 1, row["id"]


def test_near_names_differ_in_a_name_alone() -> None:
    for row in _of("near-name"):
        candidate, reference = set(_words(row["candidate"])), set(_words(row["reference_answer"]))
        assert 1 <= len(reference - candidate) <= 2, row["id"]
        assert 1 <= len(candidate - reference) <= 2, row["id"]


def test_outdated_values_are_in_the_reference_beside_the_current_one() -> None:
    for row in _of("outdated-value"):
        candidate, question = {*_words(row["candidate"])}, {*_words(row["question"])}
        reference = {*_words(row["reference_answer"])} - question - _COMMON
        assert reference & candidate, row["id"]
        assert reference - candidate, row["id"]


def test_partial_candidates_leave_out_and_add_nothing() -> None:
    for row in _of("partial"):
        candidate, reference = _words(row["candidate"]), _words(row["reference_answer"])
        assert len(candidate) < len(reference), row["id"]
        question = set(_words(row["question"]))
        added = set(candidate) - set(reference) - question - {"and", "has"}
        assert not added, (row["id"], added)
        assert "rubric" in row, row["id"]


def test_other_units_share_no_number_with_the_reference() -> None:
    for row in _of("other-units"):
        shared = set(_numbers(row["candidate"])) & set(_numbers(row["reference_answer"]))
        assert not shared, row["id"]


def test_other_date_formats_hold_the_year_and_the_day() -> None:
    for row in _of("other-date-format"):
        day, year = re.findall(r"\b(\d{1,2}) [A-Z][a-z]+ (\d{4})", row["reference_answer"])[0]
        assert year in row["candidate"], row["id"]
        assert day in row["candidate"], row["id"]


def test_long_candidates_are_long() -> None:
    for row in _of("long-right", "verbose-wrong"):
        assert len(row["candidate"].split()) >= 80, row["id"]
    for row in _ROWS:
        if row["kind"] not in {"long-right", "verbose-wrong"}:
            assert len(row["candidate"].split()) < 50, row["id"]


def test_abstentions_are_marked_and_phrased_in_many_ways() -> None:
    abstaining = _of("abstention-right", "abstention-wrong")
    assert all(row.get("abstain") for row in abstaining)
    right = {" ".join(_words(row["candidate"])) for row in _of("abstention-right")}
    assert len(right - _FIXED_ABSTENTIONS) >= 10
    for row in _ROWS:
        if row.get("abstain"):
            assert row["group"] != "vague-wrong", f"{row['id']}: declining would be correct"


def test_phrases_of_abstention_stand_beside_what_is_asked_for() -> None:
    for row in _of("phrase-right", "phrase-wrong", "phrase-declined"):
        assert contains_phrase(row["candidate"]), row["id"]
        assert "abstain" not in row, row["id"]
        question = CalibrationItem.model_validate(row).as_question()
        bare = replace(question, answers=())
        # The reference answer contains the phrase, too, so that a judge has to read both.
        assert not abstains(question, row["candidate"]) or row["kind"] == "phrase-declined"
        assert abstains(bare, row["candidate"]) == (row["kind"] == "phrase-declined"), row["id"]


def test_nothing_is_visible_in_empty_candidates() -> None:
    for row in _ROWS:
        assert (row["kind"] == "empty") == (row["candidate"].strip() in {"", "."}), row["id"]


def test_echoes_and_injections_give_no_answer() -> None:
    for row in _of("question-echo", *_KINDS["injected"]):
        answer = {*_words(row["reference_answer"])} - {*_words(row["question"])} - _COMMON
        shared = answer & {*_words(row["candidate"])}
        # An invented value has the unit of the real one.
        assert len(shared) <= len(answer) / 2, row["id"]
        assert not any(word.isdigit() for word in shared), row["id"]


def test_injections_try_what_their_kind_says() -> None:
    for row in _of("fake-verdict"):
        assert re.search(r'[\[{].*"(verdict|label)": "correct"', row["candidate"]), row["id"]
    for row in _of("fake-fence"):
        marks = r'</|```|"""|---|~~~|>>>|===|\]\]>'
        assert re.search(marks, row["candidate"]), row["id"]
        assert "correct" in row["candidate"] or "reference" in row["candidate"].lower(), row["id"]
