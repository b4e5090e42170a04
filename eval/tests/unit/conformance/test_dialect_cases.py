"""A case that meets a gap of the daemon's dialect keeps what it has already shown."""

import asyncio
from pathlib import Path

import pytest

from memconform.conformance.case import Case
from memconform.conformance.case_runner import run_case
from memconform.conformance.catalog import CaseVariant, brain_id
from memconform.conformance.fixture import Fixture
from memconform.conformance.results import CaseResult, Result
from memconform.contract.dialect import Dialect
from tests.fakes.degenerate import Degeneracy, DegenerateRunner
from tests.fakes.foreign import DIALECT, ForeignDaemon


class _ForeignRunner(DegenerateRunner):
    """Serves the daemon with another dialect from this event loop."""

    def __init__(self) -> None:
        super().__init__(Degeneracy("nothing"))
        self.daemon = ForeignDaemon()  # type: ignore[assignment] # it answers requests as well
        self.dialect = Dialect.model_validate(DIALECT)


def _run(brain: str, folder: Path) -> CaseResult:
    case = Case.model_validate(
        {
            "id": "gap-in-the-middle",
            "title": "A number is read that the dialect does not have",
            "rules": ["core.brain.create"],
            "steps": [
                {
                    "http": "GET ${brain_url}",
                    "expect": {"named": {"at": "/brainId", "is": brain}},
                    "capture": {"count": "/documents"},
                },
                {"http": "GET ${brain_url}", "expect": {"later": 200}},
            ],
        }
    )
    entry = CaseVariant(case.id, case.id, case, {}, "x.yaml")

    async def run() -> CaseResult:
        async with Fixture(_ForeignRunner(), case.daemon, folder, "test") as fixture:
            await fixture.prepare()
            return (await run_case(entry, fixture, brain_id(entry))).result

    return asyncio.run(run())


@pytest.mark.parametrize(("brain", "named"), [("${brain}", Result.PASS), ("another", Result.FAIL)])
def test_a_gap_in_the_middle_of_a_case_keeps_earlier_results(
    brain: str, named: Result, tmp_path: Path
) -> None:
    results = {check.id: check.result for check in _run(brain, tmp_path).checks}
    assert results["gap-in-the-middle#named"] is named
    assert results["gap-in-the-middle#later"] is Result.NOT_APPLICABLE
