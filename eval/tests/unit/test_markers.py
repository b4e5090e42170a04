"""What CI leaves out as sampled is part of an exhaustive test that it runs."""

import re
from collections.abc import Mapping

from tests.conftest import CHECKOUT

_TESTS = CHECKOUT / "eval" / "tests"


def _sampled_alone(files: Mapping[str, str]) -> list[str]:
    """Files whose sampled tests are all that there is."""
    return [
        name
        for name, text in files.items()
        if "mark.sampled" in text and "mark.exhaustive" not in text
    ]


def test_each_file_with_sampled_tests_has_exhaustive_ones() -> None:
    files = {p.name: p.read_text(encoding="utf-8") for p in _TESTS.glob("*/test_*.py")}
    del files["test_markers.py"]
    assert sum("mark.sampled" in text for text in files.values()) >= 5
    assert _sampled_alone(files) == []


def test_a_sampled_test_without_an_exhaustive_one_is_found() -> None:
    files = {
        "alone.py": "@pytest.mark.sampled\n",
        "part.py": "@pytest.mark.sampled\n@pytest.mark.exhaustive\n",
        "plain.py": "@pytest.mark.exhaustive\n",
    }
    assert _sampled_alone(files) == ["alone.py"]


def test_ci_leaves_out_slow_and_sampled_tests_and_no_others() -> None:
    text = (CHECKOUT / ".ci" / "run").read_text(encoding="utf-8")
    assert re.findall(r'TESTS="([^"]*)"', text) == ["not slow and not sampled"]
