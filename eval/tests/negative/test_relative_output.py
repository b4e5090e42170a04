"""With a relative --output, cases about files outside the brain name files that exist."""

import asyncio
from pathlib import Path

import pytest

from memconform.concurrency import Slots
from memconform.conformance.catalog import catalog
from memconform.conformance.mutation.mutant_runner import mutant_of
from memconform.conformance.mutation.mutant_table import mutants
from memconform.conformance.results import Result
from memconform.conformance.suite import SdkFinished, conform
from memconform.daemons.discovery import find_runner
from tests.conftest import CHECKOUT


@pytest.mark.parametrize(
    ("mutant", "case"),
    [("ingest-reads-files", "ingest-no-read[base64]"), ("files-links", "state-links")],
)
def test_a_daemon_that_reads_any_file_fails_with_a_relative_output(
    mutant: str, case: str, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both cases passed, because the file they name did not exist in the daemon's own folder."""
    del cache
    mutation = next(m.mutation for m in mutants() if m.id == mutant)
    entries = [entry for entry in catalog() if entry.id == case]
    monkeypatch.chdir(tmp_path)

    async def run() -> set[Result]:
        events = conform(
            "py",
            lambda: mutant_of(find_runner("py", CHECKOUT), mutation),
            entries,
            known=(),
            folder=Path("results"),
            run_id=f"mc-{tmp_path.name}",
            slots=Slots(1),
        )
        finished = [event async for event in events if isinstance(event, SdkFinished)]
        return {check.result for check in finished[0].result.cases[0].checks}

    assert Result.FAIL in asyncio.run(run())
