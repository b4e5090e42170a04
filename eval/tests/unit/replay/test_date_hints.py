"""Dates that questions refer to: the right ones, or none."""

import json
import os
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memconform.datasets.time_phrases import to_date_time
from memconform.replay.date_hints import date_hints, hint_line

_CHECKOUT = Path(__file__).parents[4]
_DATA = Path(os.environ.get("MEMCONFORM_DATA", _CHECKOUT.parent / "shared" / "data"))
_ORACLE = _DATA / "longmemeval" / "longmemeval_oracle.json"

_TODAY = "2023/05/30 (Tue) 23:40"


@pytest.mark.parametrize(
    ("question", "hint"),
    [
        ("What did I buy 10 days ago?", '"10 days ago" is 2023-05-20 (Sat)'),
        ("What did I buy a couple of days ago?", "about 2023-05-28 (Sun)"),
        ("What did I cook yesterday?", '"yesterday" is 2023-05-29 (Mon)'),
        ("And the day before yesterday?", "is 2023-05-28 (Sun)"),
        ("What did I mention two  weeks\nago?", '"two weeks ago" is about 2023-05-16 (Tue)'),
        ("Whom did I meet a month ago?", "about 2023-04-30 (Sun)"),
        ("Whom did I meet three months ago?", "about 2023-02-28 (Tue)"),
        ("Whom did I meet on the Friday two months ago?", "about 2023-03-31 (Fri)"),
        ("Where did I live two years ago?", "about 2021-01-01 (Fri) to 2021-12-31 (Fri)"),
        ("What did I do last Friday?", '"last Friday" is 2023-05-26 (Fri)'),
        ("Whom did I meet last Tuesday?", "is 2023-05-23 (Tue)"),
        ("How far did I run last week?", "is 2023-05-22 (Mon) to 2023-05-28 (Sun)"),
        ("What did I watch last weekend?", "is 2023-05-27 (Sat) to 2023-05-28 (Sun)"),
        ("What did I watch the past weekend?", "is 2023-05-27 (Sat) to 2023-05-28 (Sun)"),
        ("Which shoes did I clean last month?", "is 2023-04-01 (Sat) to 2023-04-30 (Sun)"),
        ("How often did I fly last year?", "is 2022-01-01 (Sat) to 2022-12-31 (Sat)"),
        ("How often did I fly this year?", "is 2023-01-01 (Sun) to 2023-05-30 (Tue)"),
        ("What did I spend since the start of the year?", "2023-01-01 (Sun) to 2023-05-30 (Tue)"),
        ("How often in the last month?", "is 2023-04-30 (Sun) to 2023-05-30 (Tue)"),
        ("How often in the past two weeks?", "is 2023-05-16 (Tue) to 2023-05-30 (Tue)"),
        ("How many trips in March?", '"in March" is 2023-03-01 (Wed) to 2023-03-31 (Fri)'),
        ("How many trips in December?", "is 2022-12-01 (Thu) to 2022-12-31 (Sat)"),
        ("How many trips in March and April?", "is 2023-03-01 (Wed) to 2023-04-30 (Sun)"),
        ("How many trips from November to January?", "2022-11-01 (Tue) to 2023-01-31 (Tue)"),
        ("Whom did I meet on Valentine\u2019s day?", '"on Valentine\'s day" is 2023-02-14 (Tue)'),
        ("Where was I on New Year's Eve?", "is 2022-12-31 (Sat)"),
    ],
)
def test_phrases_become_dates(question: str, hint: str) -> None:
    line = hint_line(question, _TODAY)
    assert hint in line
    assert line.count(" is ") == 1
    assert "\n" not in line


@pytest.mark.parametrize(
    "question",
    [
        *(
            "",
            "How many days ago did I meet Ada?",
            "a few weeks ago",
            "some weeks ago",
            "last time",
        ),
        *("twenty-one days ago", "2-3 weeks ago", "2.5 weeks ago", "two or three weeks ago"),
        *("half a year ago", "more than two weeks ago", "at least a month ago", "9999 years ago"),
        *("in the last week of May", "last Friday of the month", "the last month before I moved"),
        *("my last month's rent", "the previous year's time", "the last Friday", "last Monday"),
        *("in March 2021", "in March of 2021", "in March Madness", "in May's"),
        *("May I?", "my sister April", "What will I do in June?", "in January and March"),
        *("by the end of this month", "later this year", "in two weeks", "on Christmas Day 2020"),
        *("Who sings 'Last Friday'?", "Who sings 'last Friday' now?", 'the book "Two Weeks Ago"'),
        *("Last Week Tonight", "on Saturday mornings", "on a Sunday", "What do we have now?"),
        *("my Canon 80D", "the 27th parameter", "a $12 coupon", "the Ash Wednesday service"),
        *("a week-long trip", "5 days a week", "tonight", "in May and June", "from April to July"),
    ],
)
def test_what_may_be_another_date_has_no_hint(question: str) -> None:
    assert hint_line(question, _TODAY) == ""


def test_a_month_of_another_year_is_not_the_latest_one() -> None:
    assert hint_line("How many trips in March last year?", _TODAY) == (
        '"last year" is 2022-01-01 (Sat) to 2022-12-31 (Sat)'
    )


@pytest.mark.parametrize("today", [None, "", "some day", "2023/02/30 (Thu) 10:00"])
def test_without_a_date_of_the_question_there_are_no_hints(today: str | None) -> None:
    assert hint_line("What did I do last Friday?", today) == ""


def test_several_phrases_in_their_order() -> None:
    line = hint_line("Did I run more last month than in March, or last month?", _TODAY)
    assert line == (
        '"last month" is 2023-04-01 (Sat) to 2023-04-30 (Sun);'
        ' "in March" is 2023-03-01 (Wed) to 2023-03-31 (Fri)'
    )


@given(
    question=st.lists(
        st.sampled_from(
            [
                *("last", "Last", "the", "past", "this", "in", "on", "a", "week", "weeks", "month"),
                *("year", "ago", "two", "9999", "Friday", "March", "and", "from", "to", "'", "yes"),
                *("couple of", "days", "yesterday", "Christmas Day", "weekend", "\n", '"', "of"),
            ]
        ),
        max_size=12,
    ).map(" ".join),
    today=st.dates(),
)
def test_hints_are_of_the_past(question: str, today: date) -> None:
    for hint in date_hints(question, today):
        assert hint.first <= today
        assert hint.first <= hint.last
        assert hint.phrase in " ".join(question.split())


@pytest.mark.skipif(not _ORACLE.is_file(), reason="the public files are not in $MEMCONFORM_DATA")
def test_dates_of_real_questions_are_those_of_the_sessions_that_answer_them() -> None:
    """This file of LongMemEval has no other sessions."""
    questions = json.loads(_ORACLE.read_text())
    hinted, narrow = 0, []
    for question in questions:
        today = to_date_time(question["question_date"])
        assert today is not None
        hints = date_hints(question["question"], today.date())
        hinted += bool(hints)
        if question["question_type"] != "temporal-reasoning":
            continue
        days = [to_date_time(day) for day in question["haystack_dates"]]
        for hint in hints:
            if (hint.last - hint.first).days < 7:
                distances = [
                    max((hint.first - day.date()).days, (day.date() - hint.last).days, 0)
                    for day in days
                    if day is not None
                ]
                narrow.append(min(distances))
    assert hinted == 57
    assert len(narrow) == 20
    assert max(narrow) <= 3
    assert narrow.count(0) >= 16
