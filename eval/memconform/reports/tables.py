"""The tables of READMEs, made from the results that are published beside them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from memconform.bench.records import BenchReport, Row
from memconform.bench.tasks import ALL
from memconform.conformance.mutation.results import KillCount
from memconform.errors import UsageError
from memconform.reports.mutation import mutation_table
from memconform.upstream.embedders import MINILM
from memconform.validation import first_fault

PUBLISHED = Path("results") / "published"
LME_MODES = ("bm25", "semantic", "hybrid")
_METRICS = ("recall_any@5", "recall_any@10", "mrr@10", "ndcg@10")


@dataclass(frozen=True, slots=True)
class Table:
    """What stands in a README between `<!-- NAME: begin -->` and `<!-- NAME: end -->`."""

    readme: Path
    name: str
    text: str

    def placed(self, content: str) -> str:
        """The README's content with this table in its place.

        Raises:
            UsageError: where the README has no such place.
        """
        begin, end = f"<!-- {self.name}: begin -->\n", f"<!-- {self.name}: end -->"
        before, found, rest = content.partition(begin)
        _, closed, after = rest.partition(end)
        if not found or not closed:
            raise UsageError(
                f"{self.readme} has no {begin.strip()} … {end}",
                code="no_table",
                hint="put both where the table belongs",
            )
        return before + begin + self.text + end + after


def tables(checkout: Path) -> list[Table]:
    """Every table, from what is published in a checkout.

    Raises:
        UsageError: naming the published file that is missing or is none.
    """
    published = checkout / PUBLISHED
    lme = [_read(published / f"lme-{mode}.json") for mode in LME_MODES]
    scores = _read(published / "mutation.json")["by_profile"]
    mutation = mutation_table({name: KillCount(**score) for name, score in scores.items()})
    benches = [_bench(path) for path in sorted((published / "bench").glob("*.json"))]
    return [
        Table(checkout / "datasets" / "README.md", "lme", _lme_table(lme)),
        Table(checkout / "README.md", "mutation", mutation + "\n"),
        Table(checkout / "docs" / "BENCH.md", "bench", _bench_table(benches)),
    ]


def _read(path: Path) -> dict[str, Any]:
    try:
        loaded: dict[str, Any] = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path}: {error}", code="not_published", hint="run it in a checkout of memconform"
        ) from error
    return loaded


def _bench(path: Path) -> BenchReport:
    try:
        return BenchReport.model_validate(_read(path))
    except ValidationError as error:
        raise UsageError(
            f"{path} is not a bench report: {first_fault(error)}",
            code="not_published",
            hint="publish it anew: scripts/publish.py bench",
        ) from error


def _lme_table(results: Sequence[dict[str, Any]]) -> str:
    lines = [
        "| mode | passed | rate | 95 % interval | rankings equal |",
        "| --- | --- | --- | --- | --- |",
    ]
    for result in results:
        low, high = result["pass_rate_interval"]
        lines.append(
            f"| {result['mode']} | {result['passed']} of {result['total']}"
            f" | {result['pass_rate']:.3f} | {low:.3f} to {high:.3f}"
            f" | {', '.join(result['sdks'])}: {result['rankings_equal']} of {result['total']} |"
        )
    return "\n".join(lines) + "\n"


def _bench_table(reports: Sequence[BenchReport]) -> str:
    header = ["benchmark", "index", "system", *_METRICS, "p50 ms", "p95 ms", "ingest s"]
    lines = [f"| {' | '.join(header)} |", f"| {' | '.join(['---'] * 3 + ['---:'] * 7)} |"]
    alike: list[str] = []
    for report in reports:
        source = report.source
        name = " ".join([source.format, *source.options.values(), *source.made])
        lines += [
            f"| {' | '.join([name, report.settings.index, *_cells(report, row)])} |"
            for row in report.rows
        ]
        alike += [
            f"- {name}, {each.strategy}: {', '.join(each.systems)} rank {each.equal:,} of"
            f" {each.compared:,} queries alike"
            for each in report.alike
        ]
    return "\n".join([*lines, "", *alike] if alike else lines) + "\n"


def _cells(report: BenchReport, row: Row) -> list[str]:
    system = next(each for each in report.systems if each.name == row.system)
    if ALL not in row.views:
        raise UsageError(
            f"{report.run_id}: {row.system} {row.strategy} has no scores",
            code="not_published",
            hint="publish what was measured whole, of a benchmark that has gold",
        )
    found = row.views[ALL].metrics
    shown = [f"{found[metric].value:.1f}" for metric in _METRICS]
    interval = found[_METRICS[0]]
    shown[0] += f" ({interval.low:.1f} to {interval.high:.1f})"
    model = system.variables.get("JB_EMBED_MODEL") or system.embedder
    label = f"{row.system} {row.strategy}".strip()
    speed = row.latency.answer if row.latency else None
    if speed is None or model == MINILM:
        # Its vectors are kept between runs: who comes second is quicker.
        cost = ["-", "-", "-"]
    else:
        cost = [f"{speed.p50:.1f}", f"{speed.p95:.1f}", f"{system.ingest_s:.1f}"]
    return [f"{label} ({model})" if model and row.strategy != "bm25" else label, *shown, *cost]
