"""What a load measurement does to each SDK: the same steps, arrivals and questions."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memconform.client.timings import Timeouts
from memconform.contract.wire import Mode
from memconform.daemons.kinds import UpstreamKind
from memconform.datasets.question import Question
from memconform.ingest.documents import Corpus
from memconform.load.records import Operation

Mix = Mapping[Operation, float]
"""The share of each operation; shares are positive and sum to 1."""


@dataclass(frozen=True, slots=True)
class Step:
    """One load, which lasts for the plan's duration: either a rate, or a number of workers."""

    rate: float | None = None
    """Arrivals per second, of an open loop."""
    workers: int | None = None
    """Of a closed loop: each sends its next request once it has the answer to the last one."""

    @property
    def label(self) -> str:
        return f"{self.rate:g}/s" if self.rate is not None else f"{self.workers} closed"


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """The settings of one call of `load`, which are those of every SDK."""

    steps: tuple[Step, ...]
    duration_s: float
    seed: int
    """Of the arrivals, the operations and the order of the questions."""
    mix: Mix
    questions: tuple[Question, ...]
    dataset: str
    dataset_sha256: str
    corpus: Corpus
    mode: Mode
    top_k: int
    slow_readers: int
    in_flight_limit: int
    """Requests that may be open at once; an arrival beyond them is counted as not sent."""
    lateness_limit_ms: float
    """99th percentile of the harness's own lateness above which a step is not measured."""
    timeouts: Timeouts
    upstream: UpstreamKind
    headers: Mapping[str, str]
    output: Path
    most_p99_ms: float | None
    """The 99th percentile that each measured step of a rate must hold; None for no threshold."""
    command: tuple[str, ...]

    @property
    def connections(self) -> int:
        """How many requests may be open at once, beside those of slow readers."""
        return max(self.in_flight_limit, *(step.workers or 1 for step in self.steps))
