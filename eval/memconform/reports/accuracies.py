"""Accuracies and means of answers as cells of a table."""

from memconform.bench.qa.records import TextMetric
from memconform.reports.rates import NOT_MEASURED, format_bounds, format_rate
from memconform.scoring.accuracy import Accuracy, Estimate


def estimate_cell(estimate: Estimate | None) -> str:
    """Format an estimate with its interval."""
    if estimate is None:
        return NOT_MEASURED
    return format_rate(estimate.value, (estimate.low, estimate.high), measured=1, spec=".1f")


def accuracy_cell(accuracy: Accuracy | None) -> str:
    """Format the rate with its interval, or its bounds if it was measured in part."""
    if accuracy is None:
        return "-"
    if accuracy.rate is not None or accuracy.bounds is None or not accuracy.measured:
        return estimate_cell(accuracy.rate)
    return format_bounds(*accuracy.bounds, spec=".1f")


def accuracy_text(accuracy: Accuracy) -> str:
    """Format the rate or its bounds in a sentence, with the sign of percent."""
    cell = accuracy_cell(accuracy)
    return cell if cell == NOT_MEASURED else f"{cell} %"


def metric_cell(metric: TextMetric | None) -> str:
    """Format a mean with its interval."""
    return "-" if metric is None else estimate_cell(metric.mean)
