"""What is observed of a retrieval besides what it ranks; part of every journal's lines."""

from memconform.client.timings import Timings
from memconform.contract.ask import Retrieve
from memconform.contract.core import SearchResponse, score_rise
from memconform.contract.skipped_stages import skipped_stage
from memconform.records import Record


class Observation(Record):
    """Times in milliseconds, and where the answer deviates from what the contract asks for."""

    latency_ms: float | None = None
    """From sending the request to the end of the answer; null if nobody measured it."""
    search_ms: float | None = None
    """The search time that the system itself reports."""
    daemon_ms: float | None = None
    """The longest time that the system says it took; null if it does not say, and in older
    results."""
    rises: bool = False
    """Whether a score of the ranking rises: of a daemon, `--rank-by position` accepts it."""
    is_short: bool = False
    """Whether it ranks fewer items than there are, as a daemon with a dialect may."""
    skipped_stage: str | None = None
    """Which stage of its mode the search skipped, and why; null if it skipped none."""
    null_chunks: bool = False
    """Whether null was sent for the empty ranking, which violates core.search.shape."""

    @classmethod
    def of(
        cls, answer: SearchResponse | Retrieve, timings: Timings, *, is_complete: bool
    ) -> "Observation":
        """What a daemon's answer shows."""
        return cls(
            latency_ms=timings.done_ms,
            search_ms=answer.trace.search_ms,
            daemon_ms=timings.daemon_ms,
            rises=score_rise([chunk.score for chunk in answer.chunks]) is not None,
            is_short=not is_complete,
            skipped_stage=skipped_stage(answer.trace),
            null_chunks=answer.was_null,
        )
