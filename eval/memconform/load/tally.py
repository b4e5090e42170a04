"""Counts and histograms of one step, kept in memory that does not grow with latencies."""

from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil

from hdrh.histogram import HdrHistogram

from memconform.load.arrivals import Arrival
from memconform.load.generator import Sample
from memconform.load.records import LatencyRecord, Operation, OperationRecord

NOT_SENT = "not_sent"
"""Counts requests that were not sent because too many were open."""

_LONGEST_US = 3_600_000_000
"""An hour in microseconds: no timeout is longer."""
_DIGITS = 3
"""Significant digits of a histogram: a latency of 100 ms is known to 0.1 ms."""


class Histogram:
    """Durations in an HdrHistogram."""

    def __init__(self) -> None:
        self._values = HdrHistogram(1, _LONGEST_US, _DIGITS)

    def add(self, seconds: float) -> None:
        """Count a duration; below a microsecond, as one."""
        self._values.record_value(min(max(round(seconds * 1e6), 1), _LONGEST_US))

    def quantile_ms(self, q: float, others: int = 0) -> float | None:
        """The q-quantile in milliseconds, with `others` values that are longer than any counted.

        None if it is one of those, or if fewer than one value lies above it.
        """
        counted = self._values.get_total_count()
        total = counted + others
        # In units of the last value: 0.99 of 100 values is the 99th, above which there is one.
        if round(total * (1 - q), 9) < 1 or ceil(round(total * q, 9)) > counted:
            return None
        percentile = 100 * total * q / counted
        return float(self._values.get_value_at_percentile(min(percentile, 100))) / 1e3

    @property
    def max_ms(self) -> float | None:
        if not self._values.get_total_count():
            return None
        return float(self._values.get_max_value()) / 1e3

    def record(self, others: int) -> LatencyRecord:
        """The quantiles, with `others` values that are longer than any counted."""
        return LatencyRecord(
            p50_ms=self.quantile_ms(0.5, others),
            p90_ms=self.quantile_ms(0.9, others),
            p99_ms=self.quantile_ms(0.99, others),
            p999_ms=self.quantile_ms(0.999, others),
            max_ms=self.max_ms,
            histogram=self._values.encode().decode(),
        )


@dataclass(slots=True)
class _Operation:
    sent: int = 0
    answered: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    latency: Histogram = field(default_factory=Histogram)
    service: Histogram = field(default_factory=Histogram)


class Tally:
    """What happened in one step; a `Recorder`."""

    def __init__(self, operations: Sequence[Operation], duration_s: float) -> None:
        self._duration_s = duration_s
        self._operations = {name: _Operation() for name in operations}
        self._intended = array("d")
        """Of answered requests."""
        self._ended = array("d")
        self._quarters = [[0, 0] for _ in range(4)]
        """Arrivals, and the open requests that they found."""
        self.lateness = Histogram()
        self.in_flight_max = 0
        self.last_end_s = 0.0
        self._is_open = True

    def add(self, sample: Sample) -> None:
        counts = self._operations[sample.operation]
        counts.sent += 1
        self.in_flight_max = max(self.in_flight_max, sample.in_flight + 1)
        self.last_end_s = max(self.last_end_s, sample.ended_at)
        if sample.intended_at is None:
            self._is_open = False
        else:
            self._note_queue(sample.intended_at, sample.in_flight)
        if sample.failure is not None:
            counts.errors[sample.failure] += 1
            return
        counts.answered += 1
        counts.service.add(sample.ended_at - sample.sent_at)
        self._ended.append(sample.ended_at)
        if sample.intended_at is not None:
            counts.latency.add(sample.ended_at - sample.intended_at)
            self._intended.append(sample.intended_at)

    def add_unsent(self, arrival: Arrival) -> None:
        self._operations[arrival.operation].errors[NOT_SENT] += 1
        self._note_queue(arrival.at_s, self.in_flight_max)

    def add_lateness(self, seconds: float) -> None:
        self.lateness.add(seconds)

    def _note_queue(self, at_s: float, in_flight: int) -> None:
        quarter = self._quarters[min(int(4 * at_s / self._duration_s), 3)]
        quarter[0] += 1
        quarter[1] += in_flight

    @property
    def sent(self) -> int:
        return sum(counts.sent for counts in self._operations.values())

    @property
    def answered(self) -> int:
        return sum(counts.answered for counts in self._operations.values())

    @property
    def unsent(self) -> int:
        return sum(counts.errors[NOT_SENT] for counts in self._operations.values())

    @property
    def errors(self) -> Counter[str]:
        """Failed and unsent requests by code."""
        return sum((counts.errors for counts in self._operations.values()), Counter())

    @property
    def in_flight_quarters(self) -> list[float]:
        if not self._is_open:
            return []
        return [round(found / max(arrivals, 1), 3) for arrivals, found in self._quarters]

    @property
    def achieved_per_s(self) -> float:
        """Answers per second.

        In an open loop, of the duration and of the time by which the answers took longer to come
        than the requests took to arrive. From the 1st to the 99th percentile, so that one straggler
        is not the end; a latency that stays the same stretches nothing, however long it is.
        """
        if not self._is_open:
            return self.answered / max(self._duration_s, self.last_end_s)
        stretch = max(_spread(self._ended) - _spread(self._intended), 0)
        return self.answered / (self._duration_s + stretch)

    def operations(self) -> list[OperationRecord]:
        """The counts and latencies of each operation."""
        return [
            OperationRecord(
                operation=name,
                offered=counts.sent + counts.errors[NOT_SENT],
                sent=counts.sent,
                answered=counts.answered,
                errors={code: n for code, n in sorted(counts.errors.items()) if n},
                latency=counts.latency.record(counts.errors.total()) if self._is_open else None,
                service=counts.service.record(counts.errors.total()),
            )
            for name, counts in self._operations.items()
        ]


def _spread(instants: Sequence[float]) -> float:
    """Seconds from the 1st to the 99th percentile."""
    if not instants:
        return 0.0
    ordered = sorted(instants)
    last = len(ordered) - 1
    return ordered[last - last // 100] - ordered[last // 100]
