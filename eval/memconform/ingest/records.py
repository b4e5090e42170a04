"""Records of a seeded brain and of the verifications of its index."""

from typing import Literal

from pydantic import Field

from memconform.printing.plurals import plural
from memconform.records import Failure, Record


class ProofRecord(Record):
    """The extent of the proof of a seeded index."""

    documents: int
    """Documents that a query of their own words found."""
    of: int
    """Ingested documents that contain a word to search for."""
    without_words: int = 0
    """Ingested documents without words, which no query can find."""
    modes: list[str]
    """The modes in which each document was found."""
    share: float | None = Field(default=None, ge=0, le=1)
    """Lower bound of the searchable share, from a random sample; null if all were proven."""
    confidence: float | None = None
    """Confidence of that bound."""
    failed: int = 0
    """Searches that failed, which are not part of `of`; a failure ends a proof that is demanded."""
    promised: bool = True
    """Whether the daemon promises that each is found; otherwise `documents` is what was seen."""
    after_ms: float | None = None
    """Milliseconds from the last document until the attempt began that found them; null if that was
    the first attempt."""

    def describe(self) -> str:
        """A phrase for people: `all 212 documents proven searchable`, or what a sample proves."""
        if not self.promised:
            failed = f"; {plural(self.failed, 'search')} failed" if self.failed else ""
            return f"{self.documents:,} of {self.of:,} documents found by their own words{failed}"
        modes = f" ({', '.join(self.modes)})" if self.modes else ""
        modes += "" if self.after_ms is None else f", after {self.after_ms / 1e3:.3g} s"
        if self.share is None:
            blank = f", {self.without_words} without words" if self.without_words else ""
            return f"all {self.documents} documents proven searchable{blank}{modes}"
        return (
            f"{self.documents} random documents of {self.of} found: at least"
            f" {self.share:.1%} searchable with {self.confidence or 0:.0%} confidence{modes}"
        )


def nothing_found(questions: int) -> str:
    """Describe measurements of which every one is an empty ranking: a suspicion, and no verdict."""
    return (
        f"suspicious: nothing was retrieved for any of {questions} questions; check what the"
        " daemon does with a question, such as a threshold or a filter (memconform doctor)"
    )


class SeedRecord(Record):
    """A brain that the harness seeded."""

    documents: int
    chunks: int | None
    """Null if the daemon does not count them; `vectors` likewise."""
    vectors: int | None
    took_ms: float
    """Milliseconds of ingestion, until no document was pending."""
    proof: ProofRecord | None = None
    """Null in results of earlier versions, which probed about eight documents."""
    leased: bool = False
    """Whether the brain carries this run's token, which reveals reseeding by another run."""


class IndexStatement(Record):
    """What is known of an index, and for which measurements."""

    stage: str
    """First, by which a journal's statements are found."""
    system: str = ""
    """The system of a bench; empty for a run, which has only one."""
    haystack: str = ""
    """The haystack of a bench; empty if one index holds them all."""
    strategies: list[str] | None = None
    """For a bench: the strategies in whose mode it was looked at; null covers all."""
    attempts: int | None = None
    """For a run: how many attempts of the journal are covered; later ones ended too late."""

    def is_of(self, system: str, haystack: str) -> bool:
        """Whether it is about an index."""
        return system == self.system and self.haystack in ("", haystack)

    def covers(self, system: str, haystack: str, strategy: str) -> bool:
        """Whether it is about what a strategy found in an index."""
        is_covered = self.strategies is None or strategy in self.strategies
        return is_covered and self.is_of(system, haystack)


class IndexVerified(IndexStatement):
    """The index was found complete, so the measurements up to here count."""

    stage: Literal["proved"] = "proved"
    reproof: bool = True
    """False if only counts were compared; a run with proofs does not adopt such attempts."""


class IndexInvalidated(IndexStatement):
    """The index is in doubt, so measurements in it do not count."""

    stage: Literal["spoilt"] = "spoilt"
    since: int | None = None
    """For a run: the first attempt affected, if it had been verified before."""
    error: Failure
