"""What changed in conformance since a baseline. Pure."""

from dataclasses import dataclass, field

from memconform.conformance.results import ConformReport, Result, SdkResult
from memconform.reports.overview.overview import Overview


@dataclass(frozen=True, slots=True)
class ConformanceChanges:
    """Checks of an SDK that its baseline passed and that do not pass now."""

    sdk: str
    compared: int
    """Checks that the baseline passed and that were run again."""
    regressed: list[str] = field(default_factory=list)
    """Those that fail now."""
    lost: list[str] = field(default_factory=list)
    """Those that could not be tested now, which is no failure."""


def conformance_changes(overview: Overview) -> list[ConformanceChanges]:
    """Compare each SDK with the latest baseline of the same name; without one it is left out."""
    baselines: dict[str, set[str]] = {}
    reports = overview.baselines.of(ConformReport)
    for report in sorted(reports, key=lambda report: report.started_at):
        for sdk in report.sdks:
            baselines[sdk.sdk] = _checks(sdk, Result.PASS)
    return [
        _changes(sdk, baselines[sdk.sdk])
        for report in overview.conformance
        for sdk in report.sdks
        if sdk.sdk in baselines
    ]


def _changes(sdk: SdkResult, passed: set[str]) -> ConformanceChanges:
    failing = _checks(sdk, Result.FAIL, Result.XPASS)
    unknown = _checks(sdk, Result.UNTESTABLE, Result.ERROR)
    return ConformanceChanges(
        sdk.sdk,
        len(passed & (_checks(sdk, Result.PASS, Result.WARN) | failing)),
        sorted(failing & passed),
        sorted(unknown & passed),
    )


def _checks(sdk: SdkResult, *results: Result) -> set[str]:
    return {check.id for case in sdk.cases for check in case.checks if check.result in results}
