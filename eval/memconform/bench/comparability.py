"""Whether rows of stored results may be compared, and which setting forbids it."""

from collections.abc import Iterator, Sequence

from memconform.bench.records import BenchReport
from memconform.bench.stored_rows import StoredRow
from memconform.errors import UsageError

_DECISIVE = ("content_sha256", "chosen_sha256", "ks", "contract")
"""Settings that must be equal; an index, pruning and disputed gold may be what is compared."""
_WORDS = {
    "content_sha256": "were measured on different benchmarks, or texts of items",
    "chosen_sha256": "asked different queries",
}


def require_comparable(rows: Sequence[StoredRow]) -> None:
    """Check that rows answer the same queries about the same haystacks.

    Raises:
        UsageError: naming what differs (`unlike_runs`).
    """
    first = rows[0]
    for other in rows[1:]:
        _require_same_queries(first, other)
        for name in _DECISIVE:
            mine, yours = (getattr(each.report.settings, name) for each in (first, other))
            if mine != yours:
                words = _WORDS.get(name, f"differ in {name}: {mine} and {yours}")
                if name in _WORDS:
                    words = ": ".join(filter(None, [words, _causes(first.report, other.report)]))
                raise UsageError(
                    f"{first.address} and {other.address} {words}",
                    code="unlike_runs",
                    hint="compare rows of one benchmark with equal options, queries and --top-k",
                )


def _require_same_queries(one: StoredRow, other: StoredRow) -> None:
    """Check rows that recorded every query: by their settings they asked the same ones."""
    is_complete = all(len(each.records) == each.row.queries for each in (one, other))
    unlike = sorted(one.records.keys() ^ other.records.keys()) if is_complete else []
    if one.report.settings.shard != other.report.settings.shard:
        shards = [each.report.settings.shard for each in (one, other)]
        named = " and ".join("the whole" if each is None else each.label() for each in shards)
        raise UsageError(
            f"{one.address} and {other.address} are of {named}",
            code="unlike_runs",
            hint="join the shards with `memconform merge`, and compare what that writes",
        )
    if unlike and one.report.settings.chosen_sha256 == other.report.settings.chosen_sha256:
        raise UsageError(
            f"{one.address} and {other.address} have different queries, such as {unlike[0]!r}, but"
            " state that they asked the same",
            code="unlike_runs",
            hint="give results as `bench` wrote them: results/runs/<run-id>/result.json",
        )


def _causes(one: BenchReport, other: BenchReport) -> str:
    """The settings by which benchmarks or queries differ; the files if no setting does."""
    causes = list(_differences(one, other))
    if not causes and one.source.sha256 != other.source.sha256:
        causes = [f"files {_file(one)} and {_file(other)}"]
    return ", ".join(causes)


def _differences(one: BenchReport, other: BenchReport) -> Iterator[str]:
    if one.settings.format != other.settings.format:
        # Their other options are not comparable.
        yield f"format {one.settings.format} and {other.settings.format}"
        return
    mine, yours = one.settings.options, other.settings.options
    for name in dict.fromkeys((*mine, *yours)):
        if mine.get(name) != yours.get(name):
            yield f"{name} {mine.get(name, 'none')} and {yours.get(name, 'none')}"
    for first, second, which in ((one, other, "first"), (other, one, "second")):
        for made in first.source.made:
            if made not in second.source.made:
                yield f"{made} in the {which} only"


def _file(report: BenchReport) -> str:
    return report.source.pinned or report.source.path
