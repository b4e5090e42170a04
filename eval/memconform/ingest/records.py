"""What is stored of a seeded brain, and of the proofs that its index was whole."""

from typing import Literal

from pydantic import Field

from memconform.records import Failure, Record


class ProofRecord(Record):
    """What the proof of a seeded index covered."""

    documents: int
    """Documents that were found by a query of their own words."""
    of: int
    """Documents that were ingested and hold a word to search for."""
    without_words: int = 0
    """Ingested documents without a word: no query can find them."""
    modes: list[str]
    """In which each of them was found."""
    share: float | None = Field(default=None, ge=0, le=1)
    """At least so many of all are searchable, where they are a random sample; null for all."""
    confidence: float | None = None
    """Of that bound."""

    def describe(self) -> str:
        """`212 of 212 documents searchable`, or what a sample proves."""
        how = f" ({', '.join(self.modes)})" if self.modes else ""
        if self.share is None:
            blank = f", {self.without_words} without words" if self.without_words else ""
            return f"all {self.documents} documents proven searchable{blank}{how}"
        return (
            f"{self.documents} of {self.of} documents drawn at random and found: at least"
            f" {self.share:.1%} searchable with {self.confidence or 0:.0%} confidence{how}"
        )


class SeedRecord(Record):
    """A brain that the harness filled."""

    documents: int
    chunks: int
    vectors: int
    took_ms: float
    """From the first document that was sent until none was pending."""
    proof: ProofRecord | None = None
    """Null in results of versions that probed some eight documents."""
    leased: bool = False
    """Whether the brain carries a token of this run, by which another run's reseeding is seen."""


class IndexVerified(Record):
    """An index was seen to be whole: what was measured in it so far is a measurement."""

    stage: Literal["proved"] = "proved"
    system: str = ""
    """Of a bench; a run has one."""
    haystack: str = ""
    """Of a bench; empty where the index holds them all."""
    attempts: int | None = None
    """Of a run: how many attempts of the journal it speaks for; later ones ended too late."""
    reproof: bool = True
    """False where only counts were compared; such attempts are not adopted by a run that proves."""


class IndexInvalidated(Record):
    """An index in doubt: what was found in it since it was last verified is no measurement."""

    stage: Literal["spoilt"] = "spoilt"
    system: str = ""
    haystack: str = ""
    attempts: int | None = None
    since: int | None = None
    """Of a run: the first attempt that it speaks for, where that was verified before."""
    error: Failure
