"""Dates of benchmarks, and phrases that refer to a time."""

from datetime import UTC, datetime

import pytest

from memconform.datasets.time_phrases import (
    TimeReference,
    days_before,
    time_reference,
    to_date_time,
    to_rfc3339,
)


@pytest.mark.parametrize(
    ("question", "days", "tolerance"),
    [
        ("What did I buy 3 days ago?", 3, 2),
        ("What did I buy twelve days ago?", 12, 2),
        ("one day ago", 1, 2),
        ("a couple of days ago", 2, 2),
        ("a couple days ago", 2, 2),
        ("What happened Yesterday?", 1, 1),
        ("FOUR WEEKS AGO", 28, 5),
        ("two  weeks\nago", 14, 5),
        ("a week ago", 7, 3),
        ("last week", 7, 3),
        ("10 months ago", 300, 10),
        ("last month", 30, 7),
        ("a year ago", 365, 30),
        ("recently", 14, 14),
        # The first line of the table that occurs, not the first word.
        ("recently, or 2 days ago", 2, 2),
    ],
)
def test_a_phrase_refers_to_a_time(question: str, days: int, tolerance: int) -> None:
    assert time_reference(question) == TimeReference(days, tolerance)


@pytest.mark.parametrize(
    "question",
    [
        *("", "What did I buy?", "thirteen weeks ago", "someone weeks ago", "pizza weekend"),
        *("3 days later", "weeks ago", "in May", "99999 days ago", "alast weekly"),
        *("twenty-one days ago", "2.5 weeks ago", "1,000 days ago"),
    ],
)
def test_other_questions_do_not(question: str) -> None:
    assert time_reference(question) is None


@pytest.mark.parametrize(
    ("date", "moment"),
    [
        ("2023/05/30 (Tue) 23:40", "2023-05-30T23:40:00Z"),
        ("2023/05/30", "2023-05-30T00:00:00Z"),
        ("2023-05-30", "2023-05-30T00:00:00Z"),
        ("2023-05-30T23:40:10.5+02:00", "2023-05-30T21:40:10Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
        ("1:56 pm on 8 May, 2023", "2023-05-08T13:56:00Z"),
        ("12:09 am on 13 September, 2023", "2023-09-13T00:09:00Z"),
    ],
)
def test_dates(date: str, moment: str) -> None:
    parsed = to_date_time(date)
    assert parsed is not None
    assert to_rfc3339(parsed) == moment


@pytest.mark.parametrize(
    "date",
    [
        *(None, "", "May 2023", "2023/02/30 (Thu) 10:00", "2023/05/30 (Tue) 24:00"),
        *("2023-05-30T23:40:00", "0001-01-01T00:00:00+05:00", "13:56 pm on 8 May, 2023"),
    ],
)
def test_what_is_no_date(date: str | None) -> None:
    assert to_date_time(date) is None


def test_days_before_the_first_day_end_there() -> None:
    assert days_before(datetime(2023, 3, 1, 12, tzinfo=UTC), 1) == datetime(
        *(2023, 2, 28, 12), tzinfo=UTC
    )
    assert days_before(datetime(2, 1, 1, tzinfo=UTC), 9_999) == datetime.min.replace(tzinfo=UTC)
