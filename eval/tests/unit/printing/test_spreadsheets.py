"""One escaping of CSV: what a spreadsheet would execute is text, and numbers are numbers."""

import csv
import io
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import memconform
from memconform.printing import spreadsheets
from memconform.printing.spreadsheets import csv_line, guarded, guarded_exactly, unguarded
from tests.conftest import CHECKOUT

_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", " =", "\uff1d", "'", "7", "")
_TEXTS = st.builds(
    lambda start, rest: start + rest, st.sampled_from(_STARTS), st.text(alphabet="'=+-@1 .,\"\na")
)


def _cells(line: str) -> list[str]:
    [row] = csv.reader(io.StringIO(line, newline=""))
    return row


@pytest.mark.parametrize(
    "text",
    [
        *("=1+1", "+1+1", "-2+3", "-cmd|' /C calc'!A0", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "  =1"),
        *("\uff1d1", "+44 20 7946", "- a point of a list", "-", "+1-"),
    ],
)
def test_what_a_spreadsheet_would_execute_is_text(text: str) -> None:
    assert _cells(csv_line([text, "x"])) == [f"'{text}", "x"]


@pytest.mark.parametrize(
    "text", ["-3", "-3.5", "+7", "-.5", "1e-5", "-1E+05", "0", "2024", "a=1", "'"]
)
def test_numbers_in_words_and_all_other_texts_stay(text: str) -> None:
    assert _cells(csv_line([text])) == [text]


def test_numbers_stay_numbers() -> None:
    assert csv_line([-3, -0.5, 1e-7, None, 0, "x"]) == "-3,-0.5,1e-07,,0,x\n"


@given(_TEXTS)
def test_no_text_begins_as_a_formula_does(text: str) -> None:
    cell = guarded(text)
    assert cell in (text, f"'{text}")
    if cell.lstrip()[:1] in tuple("=+-@") and cell.lstrip():
        assert float(cell) == float(text)
    assert guarded(guarded_exactly(text)) == guarded_exactly(text)


@given(_TEXTS)
def test_an_exact_cell_gives_its_text_back(text: str) -> None:
    [cell] = _cells(csv_line([guarded_exactly(text)]))
    # A spreadsheet may drop the apostrophe when it saves the file.
    assert unguarded(cell) == text
    assert not cell.startswith(tuple("=+-@0123456789"))


def test_no_other_module_writes_csv() -> None:
    """Three modules did, and each escaped other texts, or none."""
    package = Path(memconform.__file__).parent
    files = [*package.rglob("*.py"), *(CHECKOUT / "scripts").rglob("*.py")]
    writing = {
        file.name
        for file in files
        if re.search(r"\bcsv\.(writer|DictWriter)\b", file.read_text(encoding="utf-8"))
    }
    assert writing == {Path(spreadsheets.__file__).name}
