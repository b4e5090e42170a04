"""Makes the shared brain, or takes the one that is there, and reports what it is made of."""

from collections.abc import Callable
from pathlib import Path

from pydantic import ValidationError

from memconform.llm.accounting import CallTotals
from memconform.llm.budget_client import open_cache
from memconform.llm.names import ModelName
from memconform.llm.session import LlmSession
from memconform.replay.documents import SharedBrain
from memconform.replay.extraction import Extraction, extract
from memconform.replay.fact_context import Contexts, situate
from memconform.replay.records import ExtractReport
from memconform.replay.report_builder import cost_accounting
from memconform.replay.shared_brain import BrainFile, BrainKey, BrainRecord, write_brain
from memconform.scoring.costs import RoleCost
from memconform.storage.provenance import Start
from memconform.storage.sink import replacing


async def make_brain(
    session: LlmSession,
    extractor: ModelName,
    path: Path,
    key: BrainKey,
    sessions: SharedBrain,
    *,
    known: BrainFile | None,
    report: Path,
    workers: int,
    context_cache: Path | None = None,
    progress: Callable[[], None],
    command: tuple[str, ...],
) -> BrainFile:
    """Return the brain at `path`, after making it unless it is `known`; writes extract.json.

    Raises:
        HaltingError: if no further call makes sense; replies that were paid for are cached.
        UsageError: for a model without a key or price, or a session that is too large.
        ResultsError: if it cannot be written.
    """
    start = Start()
    totals = CallTotals()
    brain = known
    if brain is None:
        extraction = Extraction()
        if key.mode == "replay":
            model = session.model(extractor)
            extraction = await extract(sessions.sessions.values(), model, workers, progress)
        contexts = Contexts()
        if key.context_prompt is not None:
            cache = None if context_cache is None else open_cache(context_cache)
            model = session.model(extractor, cache=cache)
            contexts = await situate(sessions.sessions.values(), extraction.facts, model, workers)
            extraction.facts = contexts.facts
            extraction.calls.merge(contexts.calls)
        totals = extraction.calls
        record = BrainRecord(
            key=key,
            sessions=len(sessions.sessions),
            facts=sum(map(len, extraction.facts.values())),
            served_models=tuple(sorted(extraction.served)),
            by_heuristic=dict(sorted(extraction.by_heuristic.items())),
            without_context=dict(sorted(contexts.failures.items())),
        )
        brain = write_brain(path, record, sessions, extraction.facts)
    elif _is_reported(report, brain):
        # By the command that made the brain, and knows what that took.
        return brain
    with replacing(report) as target:
        target.write_json(
            ExtractReport(
                exit_code=0,
                **start.header(command),
                brain=brain.record,
                brain_sha256=brain.sha256,
                documents=brain.size,
                from_cache=known is not None,
                cost_accounting=cost_accounting({"extractor": RoleCost.of_calls(totals)}),
            )
        )
    return brain


def _is_reported(report: Path, brain: BrainFile) -> bool:
    """Whether an earlier command on the same folder has reported the brain."""
    try:
        return ExtractReport.model_validate_json(report.read_bytes()).brain_sha256 == brain.sha256
    except (OSError, ValidationError):
        return False
