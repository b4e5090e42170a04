"""What `fuzz` prints: how much was run, and when something was found."""

from datetime import UTC, datetime

import pytest

from memconform.fuzzing.results import FoundDisagreement, FuzzReport
from memconform.reports.fuzzing import fuzz_banner, show_disagreements

_FOUND = FoundDisagreement(
    file="results/fuzz/fuzz-search.yaml", case="fuzz-search", pointer="/status",
    values={"oracle": 200, "mine": 500}, requests=2, found_after=1_037, steady=True,
    compared=["oracle", "mine"], curl=[],
)  # fmt: skip


def _report(*sdks: str, examples: int = 1_250, requests: int = 6_491) -> FuzzReport:
    return FuzzReport(
        sdks=list(sdks), started_at=datetime.now(UTC), harness_version="0", command=[],
        contract="1", seed=7, examples=examples, requests=requests, took_s=1.0,
        against="oracle", disagreement=_FOUND, disagreements=[_FOUND], exit_code=1,
    )  # fmt: skip


def test_the_requests_of_all_programs_are_not_said_to_be_of_each_program() -> None:
    """`1250 programs, 6491 requests each` reads as if each program had so many."""
    line = fuzz_banner(_report("mine"))
    assert line.endswith("; 1,250 programs with 6,491 requests, seed 7")
    line = fuzz_banner(_report("mine", "py"))
    assert line.endswith("; 1,250 programs with 6,491 requests to each SDK, seed 7")
    line = fuzz_banner(_report("mine", examples=1, requests=1))
    assert line.endswith("; 1 program with 1 request, seed 7")


def test_a_finding_is_shown_with_its_program_and_its_size(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_disagreements(_report("mine"), ["mine"])
    shown = capsys.readouterr().err
    assert "DISAGREE   fuzz-search, in program 1,037, minimized to 2 requests" in shown
