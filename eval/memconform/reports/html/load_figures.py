"""Charts of a load: latency by the rate that was offered, a line for each SDK."""

from collections.abc import Iterator, Mapping

from memconform.load.records import LoadReport
from memconform.reports.html.charts import Chart, Spec, Value, draw

_QUANTILES = ("p50", "p99")


def load_charts(report: LoadReport) -> list[Chart]:
    """A chart for each operation and quantile that was measured at any rate."""
    return list(_charts(report))


def _charts(report: LoadReport) -> Iterator[Chart]:
    for operation in report.mix:
        for quantile in _QUANTILES:
            rows = list(_points(report, operation, quantile))
            if rows:
                yield _chart(f"{operation}: {quantile} by offered rate", rows, quantile)


def _points(report: LoadReport, operation: str, quantile: str) -> Iterator[Mapping[str, Value]]:
    for sdk in report.sdks:
        for step in sdk.steps:
            # The latency of a harness that was late itself is none of the daemon's.
            if step.status != "measured":
                continue
            for each in step.operations:
                if each.operation != operation or each.latency is None:
                    continue
                ms = each.latency.p50_ms if quantile == "p50" else each.latency.p99_ms
                if ms is not None:
                    state = "saturated" if step.saturated else "keeps up"
                    yield {"sdk": sdk.sdk, "rate": step.rate, "ms": ms, "state": state}


def _chart(title: str, rows: list[Mapping[str, Value]], quantile: str) -> Chart:
    spec: Spec = {
        "width": 400,
        "height": 180,
        "mark": {"type": "line", "point": True, "strokeWidth": 2},
        "encoding": {
            "x": {"field": "rate", "type": "quantitative", "title": "requests offered per second"},
            "y": {
                "field": "ms",
                "type": "quantitative",
                "title": f"{quantile} ms",
                "scale": {"type": "log"},
            },
            "color": {"field": "sdk", "type": "nominal"},
        },
    }
    columns = {"SDK": "sdk", "offered/s": "rate", f"{quantile} ms": "ms", "": "state"}
    note = "From the instant at which a request was to be sent; steps not measured have no point."
    return draw(title, spec, rows, columns, note)
