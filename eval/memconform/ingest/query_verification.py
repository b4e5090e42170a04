"""Verifies an index after queries, with regard to what they failed to find or left in doubt."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from memconform.client.failures import CallError
from memconform.ingest.verification import (
    DOUBTFUL,
    IndexChangedError,
    IndexDoubtError,
    IndexVerifier,
)

MOST_MISSED = 1_000
"""Missed documents that a verification asks for besides those it samples: ten queries."""


@dataclass(slots=True)
class QueryVerification:
    """What the queries since the last verification call for."""

    verifier: IndexVerifier
    again: str = "--resume"
    """What asks the questions again whose results do not count."""
    _doubt: CallError | None = field(default=None, init=False)
    """A failure that puts all results since then in doubt."""
    _missed: set[str] = field(default_factory=set, init=False)
    """Paths of documents that queries needed and did not find."""

    def failed(self, error: CallError) -> None:
        """Note a doubt that a failed call casts on the index."""
        if error.code in DOUBTFUL and (self._doubt is None or error.code == "out_of_step"):
            self._doubt = error

    def missed(self, paths: Iterable[str]) -> None:
        """Note documents that a query needed and did not find."""
        if len(self._missed) < MOST_MISSED:
            self._missed.update(paths)

    async def verify(self) -> None:
        """Check that the index still contains what was ingested.

        Raises:
            IndexChangedError: if it does not, or if results since the last verification may belong
                to other queries.
            IndexUnansweredError: if the daemon no longer answers.
        """
        doubt, self._doubt = self._doubt, None
        try:
            missed, self._missed = self._missed, set()
            if doubt is None or doubt.code != "out_of_step":
                await self.verifier.verify(missed or None, full=doubt is not None)
            # A doubt that comes up during the verification may concern an earlier moment.
            doubt = next((e for e in (doubt, self._doubt) if e and e.code == "out_of_step"), None)
            if doubt is not None:
                raise IndexDoubtError(doubt.code, doubt.message)  # noqa: TRY301
        except IndexDoubtError as error:
            raise IndexChangedError(
                error.message,
                code=error.code,
                hint="results since the last verification do not count;"
                f" {self.again} asks those questions again",
            ) from error
