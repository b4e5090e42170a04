"""docs/CLI.md is what the commands say."""

from cli_reference import PAGE, _without_brackets, rendered
from tests.conftest import CHECKOUT


def test_the_page_is_up_to_date() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == rendered(), "renew it: .venv/bin/python scripts/cli_reference.py"


def test_the_page_names_no_folder_of_this_machine() -> None:
    assert str(CHECKOUT) not in rendered()


def test_an_optional_part_of_a_value_keeps_its_brackets() -> None:
    values = ["URL[,dialect=NAME]", "[FORMAT=]FILE", "[a]=[b]", "[score|position]", "N"]
    shown = ["URL[,dialect=NAME]", "[FORMAT=]FILE", "[a]=[b]", "score|position", "N"]
    assert [_without_brackets(value) for value in values] == shown
    assert "| `URL[,dialect=NAME]` |" in rendered()


def test_an_older_name_is_not_on_the_page() -> None:
    assert "--into" not in rendered()
    # `fuzz` has a flag of that name; of `mutate` it is an older one.
    section = rendered().partition("\n## memconform mutate\n")[2].partition("\n## ")[0]
    assert "--mutant" in section
    assert "--against" not in section
