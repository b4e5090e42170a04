"""Which charts a report has, and what they show."""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from memconform.bench.records import BenchReport
from memconform.bench.tasks import ALL
from memconform.reports.bench_notes import row_name
from memconform.reports.html.charts import Chart, Spec, Value, draw
from memconform.reports.overview.groups import QuestionRow, RunGroup
from memconform.reports.overview.overview import Overview
from memconform.reports.rates import is_complete
from memconform.results.scored_run import SCENARIO
from memconform.runs.verdict import Tally
from memconform.stats.quantiles import quantile

_TAGS = 12
"""Tags in a chart, those of most questions."""
_SHARES = (*(n / 100 for n in range(0, 100, 2)), 0.95, 0.99, 0.995, 1.0)
"""Quantiles of a latency distribution."""
_LISTED_SHARES = (0.5, 0.9, 0.95, 0.99, 1.0)

_Row = Mapping[str, Value]


@dataclass(slots=True)
class GroupTally:
    """What charts need of a group's questions."""

    group: RunGroup
    by_tag: dict[tuple[str, str], Tally] = field(default_factory=dict)
    """By run and tag."""
    latencies: dict[str, "array[float]"] = field(default_factory=dict)

    def add(self, row: QuestionRow) -> None:
        for run, result in zip(self.group.current, row.results, strict=True):
            for tag in result.tags:
                self.by_tag.setdefault((run.name, tag), Tally()).add(result)
            if result.latency_ms is not None and result.verdict.measured:
                self.latencies.setdefault(run.name, array("d")).append(result.latency_ms)


def group_charts(tally: GroupTally) -> list[Chart]:
    """The charts of one group of runs."""
    charts = [
        _pass_rates(tally.group),
        _tags(tally),
        _latencies(tally),
        _trend(tally.group),
        _costs(tally.group),
        _calibration(tally.group),
    ]
    name = tally.group.name
    return [replace(chart, title=f"{chart.title}: {name}") for chart in charts if chart is not None]


def bench_charts(overview: Overview) -> list[list[Chart]]:
    """The charts of each bench."""
    return [list(_of_bench(bench)) for bench in overview.benches]


def _pass_rates(group: RunGroup) -> Chart | None:
    rows: list[_Row] = []
    for run in group.current:
        summary = run.summary
        if summary.pass_rate is None or not is_complete(summary):
            continue
        low, high = summary.pass_rate_interval
        rows.append({"sdk": run.name, "rate": summary.pass_rate, "low": low, "high": high})
    if not rows:
        return None
    note = "Bars are 95 % intervals. Runs that were not measured completely have no rate."
    return draw(
        "Pass rate by SDK",
        _with_interval("sdk", "rate", "pass rate", [0, 1], "%"),
        rows,
        {"SDK": "sdk", "pass rate": "rate", "from": "low", "to": "high"},
        note,
    )


def _tags(tally: GroupTally) -> Chart | None:
    sizes: dict[str, int] = {}
    for (_, tag), counted in tally.by_tag.items():
        sizes[tag] = max(sizes.get(tag, 0), counted.total)
    shown = sorted(sizes, key=lambda tag: (-sizes[tag], tag))[:_TAGS]
    rows: list[_Row] = []
    for (run, tag), counted in sorted(tally.by_tag.items()):
        # A rate of the measured ones alone would be a plausible number about something else.
        if tag in shown and counted.total and counted.measured == counted.total:
            low, high = counted.interval()
            rates = {"rate": counted.passed / counted.total, "low": low, "high": high}
            counts = {"passed": counted.passed, "questions": counted.total}
            rows.append({"sdk": run, "tag": tag, **rates, **counts})
    if not rows:
        return None
    spec: Spec = {
        "width": 400,
        "height": {"step": 14},
        "encoding": {
            "y": {"field": "tag", "type": "nominal", "title": None, "sort": shown},
            "yOffset": {"field": "sdk"},
            "color": {"field": "sdk", "type": "nominal"},
        },
        "layer": _interval_layers("rate", "pass rate", [0, 1], "%"),
    }
    columns = {"tag": "tag", "SDK": "sdk", "passed": "passed", "questions": "questions"}
    columns |= {"pass rate": "rate", "from": "low", "to": "high"}
    note = "Bars are 95 % intervals. A tag that was not measured completely has no rate"
    more = len(sizes) - len(shown)
    note += f"; {more} more tags." if more > 0 else "."
    return draw("Pass rate by tag", spec, rows, columns, note)


def _latencies(tally: GroupTally) -> Chart | None:
    rows: list[_Row] = [
        {"sdk": run, "share": share, "ms": quantile(ordered, share)}
        for run, values in tally.latencies.items()
        if (ordered := sorted(values))
        for share in _SHARES
    ]
    if not rows:
        return None
    spec: Spec = {
        "width": 400,
        "height": 180,
        "mark": {"type": "line", "strokeWidth": 2, "interpolate": "step-after"},
        "encoding": {
            "x": {"field": "ms", "type": "quantitative", "title": "ms", "scale": {"type": "log"}},
            "y": {
                "field": "share",
                "type": "quantitative",
                "title": "answered within",
                "axis": {"format": "%"},
            },
            "color": {"field": "sdk", "type": "nominal"},
        },
    }
    columns = {"SDK": "sdk", "share of questions": "share", "within ms": "ms"}
    is_replay = tally.group.runs[0].summary.scenario == SCENARIO
    what = "Of the retrieval." if is_replay else "From request to the end of the answer."
    chart = draw("Latency", spec, rows, columns, what)
    table = [
        [str(row["sdk"]), f"{row['share']:.0%}", f"{row['ms']:.2f}"]
        for row in sorted(rows, key=lambda row: (str(row["sdk"]), row["share"]))
        if row["share"] in _LISTED_SHARES
    ]
    return replace(chart, rows=table)


def _trend(group: RunGroup) -> Chart | None:
    """Pass rates over time; only if an SDK has several runs."""
    rows: list[_Row] = [
        {
            "sdk": run.summary.sdk,
            "when": run.summary.started_at[:19] + "Z",
            "rate": run.summary.pass_rate,
            "low": run.summary.pass_rate_interval[0],
            "high": run.summary.pass_rate_interval[1],
            "version": run.summary.daemon.version,
        }
        for run in group.runs
        if is_complete(run.summary)
    ]
    if len(rows) <= len({row["sdk"] for row in rows}):
        return None
    x = {"field": "when", "type": "temporal", "title": None, "scale": {"type": "utc"}}
    y = {"field": "rate", "type": "quantitative", "title": "pass rate", "axis": {"format": "%"}}
    spec: Spec = {
        "width": 400,
        "height": 160,
        "encoding": {"x": x, "color": {"field": "sdk", "type": "nominal"}},
        "layer": [
            {"mark": {"type": "line", "point": True}, "encoding": {"y": y}},
            {"mark": "rule", "encoding": {"y": {**y, "field": "low"}, "y2": {"field": "high"}}},
        ],
    }
    columns = {"date (UTC)": "when", "SDK": "sdk", "version": "version", "pass rate": "rate"}
    return draw("Pass rate over time", spec, rows, columns | {"from": "low", "to": "high"})


def _costs(group: RunGroup) -> Chart | None:
    rows: list[_Row] = [
        {"sdk": run.name, "usd": run.summary.judging.cost_usd, "rate": run.summary.pass_rate}
        for run in group.current
        if run.summary.judging is not None
        and run.summary.judging.cost_usd > 0
        and is_complete(run.summary)
    ]
    return _cost_chart(rows, "pass rate") if rows else None


def _cost_chart(rows: Sequence[_Row], quality: str) -> Chart:
    spec: Spec = {
        "width": 400,
        "height": 160,
        "mark": {"type": "point", "filled": True, "size": 90},
        "encoding": {
            "x": {"field": "usd", "type": "quantitative", "title": "US dollars"},
            "y": {
                "field": "rate",
                "type": "quantitative",
                "title": quality,
                "axis": {"format": "%"},
            },
            "color": {"field": "sdk", "type": "nominal"},
        },
    }
    return draw(
        "Cost and quality", spec, rows, {"SDK": "sdk", "US dollars": "usd", quality: "rate"}
    )


def replay_charts(overview: Overview) -> list[Chart]:
    """Scores of replays with their intervals, and what they cost."""
    measured = [replay for replay in overview.replays if replay.overall_score is not None]
    if not measured:
        return []
    rows: list[_Row] = [
        {
            "sdk": replay.sdk,
            "rate": replay.overall_score,
            "low": (replay.overall_interval or (0, 1))[0],
            "high": (replay.overall_interval or (0, 1))[1],
            "usd": replay.cost_accounting.total_usd,
        }
        for replay in measured
    ]
    spec = _with_interval("sdk", "rate", "overall score", [0, 1], "%")
    columns = {"SDK": "sdk", "overall score": "rate", "from": "low", "to": "high"}
    charts = [draw("Replay: overall score", spec, rows, columns)]
    return (
        [*charts, _cost_chart(rows, "overall score")] if any(row["usd"] for row in rows) else charts
    )


def _calibration(group: RunGroup) -> Chart | None:
    rows: list[_Row] = []
    judges = {
        use.model: use.calibration
        for run in group.current
        if run.summary.judging is not None
        for use in run.summary.judging.judges
        if use.calibration is not None
    }
    for model, calibration in judges.items():
        rates = {"right, rejected": calibration.false_rejects}
        rates |= {f"{name}, accepted": rate for name, rate in calibration.false_accepts.items()}
        for name, rate in rates.items():
            if rate.rate is not None:
                low, high = rate.interval
                errors = {"errors": rate.errors, "items": rate.items}
                interval = {"rate": rate.rate, "low": low, "high": high}
                rows.append({"judge": model, "answers": name, **interval, **errors})
    if not rows:
        return None
    spec = _with_interval("answers", "rate", "judged wrongly", [0, 1], "%")
    spec["encoding"] = {**spec.get("encoding", {}), "color": {"field": "judge", "type": "nominal"}}
    columns = {"judge": "judge", "answers": "answers", "errors": "errors", "of": "items"}
    note = "Measured on labelled answers; bars are 95 % intervals."
    return draw("The judge's errors", spec, rows, columns | {"rate": "rate"}, note)


def _of_bench(bench: BenchReport) -> Iterator[Chart]:
    for prefix, title in (
        ("recall_any@", "Recall (any) at k"),
        ("recall_all@", "Recall (all) at k"),
    ):
        rows: list[_Row] = []
        for row in bench.rows:
            if not row.measured or ALL not in row.views:
                continue
            for name, value in row.views[ALL].metrics.items():
                if name.startswith(prefix):
                    label = row_name(row)
                    interval = {"recall": value.value, "low": value.low, "high": value.high}
                    rows.append({"system": label, "k": int(name.removeprefix(prefix)), **interval})
        if not rows:
            continue
        y = {"field": "recall", "type": "quantitative", "title": "%", "scale": {"zero": False}}
        spec: Spec = {
            "width": 400,
            "height": 200,
            "encoding": {
                "x": {"field": "k", "type": "ordinal", "title": "k", "axis": {"labelAngle": 0}},
                "color": {"field": "system", "type": "nominal"},
            },
            "layer": [
                {"mark": {"type": "line", "point": True}, "encoding": {"y": y}},
                {
                    "mark": {"type": "rule", "opacity": 0.5},
                    "encoding": {"y": {**y, "field": "low"}, "y2": {"field": "high"}},
                },
            ],
        }
        columns = {"system": "system", "k": "k", "%": "recall", "from": "low", "to": "high"}
        yield draw(title, spec, rows, columns, "Bars are 95 % intervals.")
    latencies: list[_Row] = [
        {"system": row_name(row), "percentile": name, "ms": value}
        for row in bench.rows
        if row.latency is not None
        for name, value in row.latency.answer.model_dump().items()
    ]
    if latencies:
        spec = {
            "width": 400,
            "height": {"step": 12},
            "mark": {"type": "bar"},
            "encoding": {
                "y": {"field": "system", "type": "nominal", "title": None},
                "yOffset": {"field": "percentile"},
                "x": {"field": "ms", "type": "quantitative", "title": "ms"},
                "color": {"field": "percentile", "type": "nominal"},
            },
        }
        columns = {"system": "system", "percentile": "percentile", "ms": "ms"}
        yield draw("Latency of a search", spec, latencies, columns)
    if (chart := quality_and_cost(bench)) is not None:
        yield chart


def quality_and_cost(bench: BenchReport) -> Chart | None:
    """What each row finds, by how long a search and the storing of items take."""
    metric = f"recall_any@{max(bench.settings.ks)}"
    systems = {system.name: system for system in bench.systems}
    rows: list[_Row] = [
        {
            "system": row_name(row),
            "recall": row.views[ALL].metrics[metric].value,
            "ms": row.latency.answer.p50,
            "store": 1_000 / rate,
        }
        for row in bench.rows
        if row.measured and ALL in row.views and row.latency is not None
        if (rate := systems[row.system].documents_per_s)
    ]
    if len(rows) < 2:
        return None
    spec: Spec = {
        "width": 560,
        "height": 400,
        "encoding": {
            "x": {
                "field": "ms",
                "type": "quantitative",
                "title": "a search, ms (p50)",
                "scale": {"type": "log", "nice": True},
                "axis": {"grid": False, "format": "~g", "tickCount": 5},
            },
            "y": {
                "field": "recall",
                "type": "quantitative",
                "title": f"{metric}, %",
                "scale": {"zero": False},
            },
        },
        "layer": [
            {
                "mark": {"type": "point", "filled": True, "opacity": 0.6},
                "encoding": {
                    "size": {
                        "field": "store",
                        "type": "quantitative",
                        "scale": {"range": [20, 600]},
                        "legend": {"format": "~g", "title": "s for 1,000"},
                    }
                },
            },
            {
                "mark": {"type": "text", "align": "left", "dx": 8, "fontSize": 9, "angle": 340},
                "encoding": {"text": {"field": "system"}},
            },
        ],
    }
    columns = {"system": "system", metric: "recall", "ms": "ms", "s to store 1,000": "store"}
    return draw("Quality, speed and cost", spec, rows, columns)


def _with_interval(name: str, value: str, title: str, domain: Sequence[float], unit: str) -> Spec:
    return {
        "width": 400,
        "height": {"step": 28},
        "encoding": {"y": {"field": name, "type": "nominal", "title": None}},
        "layer": _interval_layers(value, title, domain, unit),
    }


def _interval_layers(value: str, title: str, domain: Sequence[float], unit: str) -> list[Spec]:
    x: Spec = {"type": "quantitative", "title": title, "scale": {"domain": list(domain)}}
    x["axis"] = {"format": unit}
    return [
        {
            "mark": {"type": "rule", "strokeWidth": 2, "opacity": 0.6},
            "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
            "encoding": {"x": {**x, "field": value}},
        },
    ]
