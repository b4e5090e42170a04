from itertools import permutations

import click
import pytest

from memconform.cli import main
from memconform.errors import ExitCode, UsageError, gravest, nearest
from memconform.printing.errors import render_error

_ORDER = [130, 2, 70, 3, 6, 4, 1, 5, 0]


def test_the_gravest_code_wins_whatever_the_order() -> None:
    for first, second in permutations(_ORDER, 2):
        expected = min(first, second, key=_ORDER.index)
        assert gravest([ExitCode(first), ExitCode(second)]) == expected


def test_no_codes_mean_ok() -> None:
    assert gravest([]) is ExitCode.OK


def test_every_code_has_a_precedence() -> None:
    assert sorted(_ORDER) == sorted(ExitCode)


def test_an_error_says_what_where_and_what_to_try() -> None:
    error = UsageError("it broke", code="broken", hint="mend it", excerpt="line 1\nline 2")
    assert render_error(error) == "broken: it broke\n  | line 1\n  | line 2\n  try: mend it"


def test_a_name_with_half_the_letters_in_common_is_not_suggested() -> None:
    assert nearest("nothing", ["computing", "facts"]) == ""


def test_a_beginning_of_a_name_is_completed() -> None:
    """The oracle was suggested for the file S, on which every session scores 100."""
    names = ["longmemeval_oracle", "longmemeval_s_cleaned"]
    assert nearest("longmemeval_s", names) == "did you mean 'longmemeval_s_cleaned'?"


@pytest.mark.parametrize(("name", "hint"), [("pi", "did you mean 'py'?"), ("rust", "")])
def test_nearest(name: str, hint: str) -> None:
    assert nearest(name, ["py", "go", "ts"]) == hint


def test_an_end_of_file_is_not_an_interrupt(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """click ends an EOFError, say of a cut module of Python's cache, as if Ctrl-C had been hit."""

    @click.command()
    def crash() -> None:
        raise EOFError("marshal data too short")

    monkeypatch.setattr(main, "cli", crash)
    monkeypatch.setattr("sys.argv", ["memconform"])
    with pytest.raises(SystemExit) as caught:
        main.main()
    assert caught.value.code == 70
    assert "marshal data too short" in capsys.readouterr().err


def test_an_internal_crash_never_exits_like_a_low_score(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def crash(**_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(main, "cli", crash)
    with pytest.raises(SystemExit) as caught:
        main.main()
    assert caught.value.code == 70
    assert "ZeroDivisionError" in capsys.readouterr().err
