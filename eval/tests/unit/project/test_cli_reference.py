"""docs/CLI.md is what the commands say."""

import importlib.util
from types import ModuleType

import pytest

from tests.conftest import CHECKOUT


@pytest.fixture(scope="module")
def script() -> ModuleType:
    path = CHECKOUT / "scripts" / "cli_reference.py"
    spec = importlib.util.spec_from_file_location("cli_reference", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date(script: ModuleType) -> None:
    page = script.PAGE.read_text(encoding="utf-8")
    assert page == script.rendered(), "renew it: .venv/bin/python scripts/cli_reference.py"


def test_the_page_names_no_folder_of_this_machine(script: ModuleType) -> None:
    assert str(CHECKOUT) not in script.rendered()


def test_an_optional_part_of_a_value_keeps_its_brackets(script: ModuleType) -> None:
    values = ["URL[,dialect=NAME]", "[FORMAT=]FILE", "[a]=[b]", "[score|position]", "N"]
    shown = ["URL[,dialect=NAME]", "[FORMAT=]FILE", "[a]=[b]", "score|position", "N"]
    assert [script._without_brackets(value) for value in values] == shown
    assert "| `URL[,dialect=NAME]` |" in script.rendered()


def test_an_older_name_is_not_on_the_page(script: ModuleType) -> None:
    assert "--into" not in script.rendered()
    # `fuzz` has a flag of that name; of `mutate` it is an older one.
    section = script.rendered().partition("\n## memconform mutate\n")[2].partition("\n## ")[0]
    assert "--mutant" in section
    assert "--against" not in section
