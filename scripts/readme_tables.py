"""Updates the tables of the READMEs from results/published.

python scripts/readme_tables.py [CHECKOUT]          by default the current folder
python scripts/readme_tables.py --check [CHECKOUT]  changes nothing

Exit codes: 0 ok · 1 a README is out of date (--check) · 2 a published result or a marker is missing
or invalid
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from memconform.bench.answering.records import AnswerReport, ArmReport
from memconform.bench.records import BenchReport, Row, Scores
from memconform.bench.tasks import ALL, OFFICIAL, OFFICIAL_SESSIONS
from memconform.conformance.mutation.results import KillCount
from memconform.datasets.files import read_text
from memconform.errors import ExitCode, MemconformError, UsageError
from memconform.printing.errors import render_error
from memconform.printing.plurals import plural
from memconform.replay.records import PublishedReplay
from memconform.reports.accuracies import accuracy_cell, estimate_cell, metric_cell
from memconform.reports.bench_notes import behaviour_table, bm25_table, row_name
from memconform.reports.lme import replay_table
from memconform.reports.markdown import markdown_table
from memconform.reports.mutation import mutation_table
from memconform.reports.rates import format_rate
from memconform.storage.sink import replacing
from memconform.upstream.embedders import BGE, MINILM
from memconform.validation_faults import first_fault
from memini_tables import comparison_table, dates_comparison_table, read_others

_Report = TypeVar("_Report", bound=BaseModel)

PUBLISHED = Path("results") / "published"
LME_MODES = ("bm25", "semantic", "hybrid")
_METRICS = ("recall_any@5", "recall_any@10", "mrr@10", "ndcg@10")
_OFFICIAL_METRICS = (
    *("recall_any@1", "recall_any@5", "recall_any@10"),
    *("recall_all@1", "recall_all@5", "recall_all@10", "ndcg_any@10"),
)


@dataclass(frozen=True, slots=True)
class Table:
    """The text between `<!-- NAME: begin -->` and `<!-- NAME: end -->` in a README."""

    readme: Path
    name: str
    text: str

    def placed(self, content: str) -> str:
        """Return the README's content with this table inserted between its markers.

        Raises:
            UsageError: if a marker is missing (code `no_table`).
        """
        begin, end = f"<!-- {self.name}: begin -->\n", f"<!-- {self.name}: end -->"
        before, opening, rest = content.partition(begin)
        _, closing, after = rest.partition(end)
        if not opening or not closing:
            raise UsageError(
                f"{self.readme} has no {begin.strip()} … {end}",
                code="no_table",
                hint="put both markers where the table belongs",
            )
        return before + begin + self.text + end + after


def tables(checkout: Path) -> list[Table]:
    """Build every table from the published results of a checkout.

    Raises:
        UsageError: if a published file is missing or invalid (code `not_published`).
    """
    published = checkout / PUBLISHED
    lme_results = [_read(published / f"lme-{mode}.json") for mode in LME_MODES]
    scores = _read(published / "mutation.json")["by_profile"]
    clients = _read(published / "clients.json")
    broken = {name: clients["broken"][name] for name in ("killed", "total")}
    killed = {name: KillCount(**score) for name, score in (scores | {"client": broken}).items()}
    mutation = mutation_table(killed)
    by_name = _reports(published / "bench", BenchReport)
    benches = list(by_name.values())
    dated = [report for report in benches if any(map(_by_date, report.rows))]
    undated = [report for report in benches if report not in dated]
    memini = read_others(published / "memini.json")
    answers = list(_reports(published / "answers", AnswerReport).values())
    replayed = _report(published / "replay.json", PublishedReplay)
    return [
        Table(checkout / "datasets" / "README.md", "lme", _lme_table(lme_results)),
        Table(checkout / "README.md", "mutation", mutation + "\n"),
        Table(checkout / "docs" / "CLIENTS.md", "clients", _clients_table(clients["rows"])),
        Table(checkout / "docs" / "BENCH.md", "bench", _bench_table(undated)),
        Table(checkout / "docs" / "BENCH.md", "bench-official", _official_table(undated)),
        Table(checkout / "docs" / "BENCH.md", "bench-dates", _dates_table(dated)),
        Table(checkout / "docs" / "BENCH.md", "bench-memini", comparison_table(memini, by_name)),
        Table(
            checkout / "docs" / "BENCH.md",
            "bench-memini-dates",
            dates_comparison_table(memini, by_name),
        ),
        *_systems_tables(checkout),
        Table(checkout / "docs" / "ANSWERS.md", "answers", _answers_table(answers)),
        Table(checkout / "docs" / "REPLAY.md", "replay", _replay_table(replayed)),
        Table(
            checkout / "docs" / "DIALECTS.md",
            "public",
            _public_table(_read(published / "public.json")["rows"]),
        ),
    ]


def _clients_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """What the cases found in public clients, a line each."""
    header = ["client", "version", "cases that apply", "checks passed", "failed", "untestable"]
    cells = [
        [row["name"], row["driver"], f"{row['cases']}"]
        + [f"{row['checks'][name]:,}" for name in ("pass", "fail", "untestable")]
        for row in rows
    ]
    return "\n".join(markdown_table(header, cells, left=range(2))) + "\n"


def _read(path: Path) -> dict[str, Any]:
    try:
        loaded: dict[str, Any] = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path}: {error}", code="not_published", hint="run it in a checkout of memconform"
        ) from error
    return loaded


def _reports(folder: Path, model: type[_Report]) -> dict[str, _Report]:
    """The published reports of a folder, by name."""
    return {path.stem: _report(path, model) for path in sorted(folder.glob("*.json"))}


def _report(path: Path, model: type[_Report]) -> _Report:
    try:
        return model.model_validate(_read(path))
    except ValidationError as error:
        raise UsageError(
            f"{path} does not belong into {path.parent.name}/: {first_fault(error)}",
            code="not_published",
            hint=f"publish it again: scripts/publish.py {path.parent.name}/{path.stem}",
        ) from error


def _lme_table(results: Sequence[dict[str, Any]]) -> str:
    header = ["mode", "passed", "rate", "95 % interval", "rankings equal"]
    rows = []
    for result in results:
        if result["pass_rate"] is None:
            raise UsageError(
                f"{result['mode']}: nothing was measured",
                code="not_published",
                hint="publish a completely measured run",
            )
        rate, interval = format_rate(
            result["pass_rate"], result["pass_rate_interval"], measured=result["total"]
        ).split(" ", 1)
        equal = f"{result['rankings_equal']} of {result['total']}"
        cells = [result["mode"], f"{result['passed']} of {result['total']}", rate]
        rows.append([*cells, interval.strip("()"), f"{', '.join(result['sdks'])}: {equal}"])
    return "\n".join(markdown_table(header, rows, left=range(len(header)))) + "\n"


def _bench_table(reports: Sequence[BenchReport]) -> str:
    header = ["benchmark", "index", "system", *_METRICS, "p50 ms", "p95 ms", "ingest s"]
    rows: list[list[str]] = []
    agreements: list[str] = []
    for report in reports:
        source = report.source
        name = " ".join([source.format, *source.options.values(), *source.made])
        rows += [[name, report.settings.index, *_cells(report, row)] for row in report.rows]
        agreements += [
            f"- {name}, {agreement.strategy}: {', '.join(agreement.systems)} rank"
            f" {agreement.equal:,} of {plural(agreement.compared, 'query', spec=',')} alike"
            for agreement in report.alike
        ]
    lines = markdown_table(header, rows, left=range(3))
    return "\n".join([*lines, "", *agreements] if agreements else lines) + "\n"


def _systems_tables(checkout: Path) -> list[Table]:
    """The tables of docs/SYSTEMS.md, and the best rows of one for README."""
    folder, page = checkout / PUBLISHED / "systems", checkout / "docs" / "SYSTEMS.md"
    found = []
    for name, report in _reports(folder, BenchReport).items():
        found.append(Table(page, f"systems-{name}", _systems_table(report)))
        kinds = {"behaviour": behaviour_table(report), "bm25": bm25_table(report)}
        for kind, table in kinds.items():
            if table is None:
                # Of a bench that was continued, what a system did in an earlier part is not known.
                continue
            lines = markdown_table(*table)
            found.append(Table(page, f"systems-{name}-{kind}", "\n".join([*lines, ""])))
    stated = _read(checkout / PUBLISHED / "stated.json")
    found.append(Table(page, "systems-stated", _stated_table(**stated)))
    turns = _report(folder / "locomo-turn.json", BenchReport)
    return [*found, Table(checkout / "README.md", "systems", _grouped_scores_table(turns))]


def _stated_table(rows: Sequence[Mapping[str, str]], read_at: str) -> str:
    """What the makers of systems state themselves, and where it was read when."""
    cells = [[row["system"], row["stated"], row["of"]] for row in rows]
    sources = dict.fromkeys(f"- {row['system']}: <{row['source']}>" for row in rows)
    lines = markdown_table(["system", "stated", "of"], cells, left=range(3))
    return "\n".join([*lines, "", f"Read on {read_at}:", "", *sources, ""])


def _grouped_scores_table(report: BenchReport) -> str:
    """The scores of a bench, best first; systems with the same scores are one row."""
    names: dict[tuple[str, ...], list[str]] = {}
    for row, scores in _ranked(report):
        names.setdefault(tuple(scores), []).append(row_name(row))
    rows = [[", ".join(alike), *scores] for scores, alike in names.items()]
    return "\n".join(markdown_table(["system", *_METRICS], rows)) + "\n"


def _systems_table(report: BenchReport) -> str:
    """The rows of a bench, best first: quality, latency, and what storing the items cost."""
    header = ["system", "version", *_METRICS, "p50 ms", "p95 ms", "items/s", "MiB memory"]
    rows = []
    for row, scores in _ranked(report):
        system = next(system for system in report.systems if system.name == row.system)
        speed = row.latency.answer if row.latency is not None else None
        costs = ["-", "-"] if speed is None else [f"{speed.p50:.1f}", f"{speed.p95:.1f}"]
        rate, memory = system.documents_per_s, system.rss_peak_bytes
        costs.append("-" if rate is None else f"{rate:,.0f}")
        costs.append("-" if memory is None else f"{memory / 2**20:,.0f}")
        rows.append([row_name(row), system.version or "-", *scores, *costs])
    return "\n".join(markdown_table(header, rows, left=range(2))) + "\n"


def _ranked(report: BenchReport) -> list[tuple[Row, list[str]]]:
    """The rows of a bench with their scores, best first; raises UsageError if one has none."""
    scores = [(row, _cells(report, row)[1 : 1 + len(_METRICS)]) for row in report.rows]
    return sorted(scores, key=lambda each: -each[0].views[ALL].metrics["recall_any@10"].value)


def _official_table(reports: Sequence[BenchReport]) -> str:
    """The official views of LongMemEval's isolated indexes, with all of their metrics' names."""
    header = ["index of", "text", "system", "metrics by", *_OFFICIAL_METRICS]
    rows = []
    for report in reports:
        official = {system.name for system in report.systems if system.official_items}
        level = report.source.options.get("level", "")
        for row in report.rows if report.settings.index == "isolated" else ():
            for name, unit in ((OFFICIAL, level), (OFFICIAL_SESSIONS, "session")):
                if (view := row.views.get(name)) is None:
                    continue
                text = report.source.options.get("session_doc", "user turns")
                cells = [f"{level}s", "official" if row.system in official else text]
                cells += [f"{row.system} {row.strategy}".strip(), unit]
                cells += [f"{view.metrics[metric].value:.1f}" for metric in _OFFICIAL_METRICS]
                rows.append(cells)
    return "\n".join(markdown_table(header, rows, left=range(4))) + "\n"


def _answers_table(reports: Sequence[AnswerReport]) -> str:
    """Every arm of every report, which must be measured completely."""
    header = ["benchmark", "questions", "arm", "accuracy", "abstention", "kept %"]
    header += ["all gold shown", "some gold missing", "F1"]
    rows = []
    for report in reports:
        for arm in report.arms:
            name = f"{report.settings.suite}, {report.settings.level}s"
            cells = [name, f"{report.questions:,}", arm.name, *_answer_cells(report, arm)]
            rows.append(cells)
    return "\n".join(markdown_table(header, rows, left=(0, 2))) + "\n"


def _answer_cells(report: AnswerReport, arm: ArmReport) -> list[str]:
    if not arm.measured:
        raise UsageError(
            f"{report.run_id}: {arm.name} was not measured on every question",
            code="not_published",
            hint="publish a completely measured run: scripts/publish.py answers",
        )
    scores = arm.views[ALL]
    share = arm.kept.share if arm.kept is not None else None
    return [
        accuracy_cell(scores.overall),
        accuracy_cell(scores.abstention) if scores.abstention.expected else "-",
        "-" if share is None else estimate_cell(share),
        accuracy_cell(arm.with_gold),
        accuracy_cell(arm.without_gold),
        metric_cell(arm.f1),
    ]


def _replay_table(published: PublishedReplay) -> str:
    """Every SDK, and what the comparison of all came to."""
    results = published.results
    if any(result.measured < result.questions_run for result in results):
        raise UsageError(
            "the published replay was not measured on every question",
            code="not_published",
            hint="publish a completely measured one: scripts/publish.py replay",
        )
    lines = markdown_table(*replay_table(results))
    questions, verdict = results[0].questions_run, published.parity.verdict.value
    about = f"{plural(questions, 'question')} of the file {results[0].dataset_sha[:12]}…; {verdict}"
    return "\n".join([*lines, "", f"{about}.", ""])


def _public_table(rows: Sequence[dict[str, Any]]) -> str:
    """What each command says of each public daemon."""
    lines = markdown_table(
        ["memconform …", *rows[0]["cells"]],
        [[row["command"], *row["cells"].values()] for row in rows],
    )
    return "\n".join([*lines, ""])


def _by_date(row: Row) -> bool:
    """Whether a row is ranked by dates; a report that has one is shown in a table of its own."""
    return any(setting.startswith(("recency=", "temporal=")) for setting in row.strategy.split())


def _dates_table(reports: Sequence[BenchReport]) -> str:
    """Rows of reports about dates by category, with the interval of the first metric."""
    metrics = ("recall_any@1", "recall_any@5", "mrr@10")
    rows = []
    for report in reports:
        for row in report.rows:
            view = row.views[ALL]
            scopes: dict[str, Scores] = {**view.by_category}
            if len(scopes) > 1:
                scopes["all"] = view
            for name, scores in scopes.items():
                values = [scores.metrics[metric] for metric in metrics]
                first = values[0]
                cells = [name, f"{row.system} {row.strategy}"]
                interval = (first.low, first.high)
                cells.append(
                    format_rate(first.value, interval, measured=scores.queries, spec=".1f")
                )
                cells += [f"{value.value:.1f}" for value in values[1:]]
                rows.append(cells)
    return "\n".join(markdown_table(["questions", "system", *metrics], rows, left=range(2))) + "\n"


def _cells(report: BenchReport, row: Row) -> list[str]:
    system = next(system for system in report.systems if system.name == row.system)
    if ALL not in row.views:
        raise UsageError(
            f"{report.run_id}: {row.system} {row.strategy} has no scores",
            code="not_published",
            hint="publish a completely measured run of a benchmark with gold",
        )
    metrics = row.views[ALL].metrics
    scores = [f"{metrics[name].value:.1f}" for name in _METRICS]
    first, queries = metrics[_METRICS[0]], row.views[ALL].queries
    interval = (first.low, first.high)
    scores[0] = format_rate(first.value, interval, measured=queries, spec=".1f")
    model = system.variables.get("JB_EMBED_MODEL") or system.embedder
    label = row_name(row)
    speed = row.latency.answer if row.latency else None
    if speed is None or system.ingest_s is None or model in (BGE, MINILM):
        # The vectors of trained models are cached between runs, so later systems are faster.
        costs = ["-", "-", "-"]
    else:
        costs = [f"{speed.p50:.1f}", f"{speed.p95:.1f}", f"{system.ingest_s:.1f}"]
    return [f"{label} ({model})" if model and row.strategy != "bm25" else label, *scores, *costs]


def update(checkout: Path, *, check: bool) -> ExitCode:
    """Update the tables of a checkout; with `check`, only say which differ.

    Raises:
        UsageError: as `tables` and `Table.placed`, and if a README is not UTF-8
            (`dataset_unreadable`).
    """
    code = ExitCode.OK
    for table in tables(checkout):
        content = _content(table.readme)
        updated = table.placed(content)
        if updated == content:
            print(f"{table.readme}: {table.name} is up to date")
        elif check:
            print(
                f"{table.readme}: {table.name} differs from the published results", file=sys.stderr
            )
            code = ExitCode.FAILED
        else:
            with replacing(table.readme) as file:
                file.write_text(updated)
            print(f"{table.readme}: {table.name} updated")
    return code


def _content(readme: Path) -> str:
    """The text of a README, with line ends as in the tables."""
    try:
        return read_text(readme).replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{readme} is not UTF-8 at byte {error.start}",
            code="dataset_unreadable",
            hint="save it as UTF-8",
        ) from error


def main() -> int:
    parser = argparse.ArgumentParser(description="Update the tables of the READMEs.")
    parser.add_argument("checkout", type=Path, nargs="?", default=Path())
    parser.add_argument("--check", action="store_true", help="change nothing")
    options = parser.parse_args()
    try:
        return update(options.checkout, check=options.check)
    except MemconformError as error:
        print(render_error(error), file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
