"""What the static parts of the page show, as values that templates need not compute."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from memconform.bench.records import BenchReport, Row
from memconform.bench.tasks import ALL
from memconform.conformance.results import ConformReport, Result
from memconform.conformance.rules import rules
from memconform.contract.wire import Profile
from memconform.parity.loaded_runs import LoadedRun
from memconform.printing.plurals import plural
from memconform.reports.overview.groups import RunGroup
from memconform.reports.overview.headline import Grade, Statement, fragment, statements
from memconform.reports.overview.overview import Overview
from memconform.reports.overview.replays import SCENARIO
from memconform.reports.rates import measured_questions, missing_questions, pass_rate_text
from memconform.runs.results import RunSummary


@dataclass(frozen=True, slots=True)
class Cell:
    """One run in the matrix."""

    rate: str
    counts: str
    grade: Grade
    link: str
    change: str = ""


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One group of runs; a cell is None for an SDK that did not run it."""

    name: str
    link: str
    differs_link: str
    cells: list[Cell | None]
    agreement: str
    """The parity verdict, or why there is none."""
    differing: str
    """How many questions differ; empty if none do."""
    grade: Grade


@dataclass(frozen=True, slots=True)
class Regression:
    """Questions or checks that passed before, of one SDK."""

    sdk: str
    where: str
    items: list[tuple[str, str]]
    """Names with links; the first few."""
    more: int


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """An SDK's checks of one profile."""

    sdk: str
    profile: str
    counts: dict[str, int]
    grade: Grade


@dataclass(frozen=True, slots=True)
class Page:
    """The front page and the static views."""

    verdict: Statement
    statements: list[Statement]
    sdks: list[str]
    matrix: list[MatrixRow]
    regressions: list[Regression]
    profiles: list[ProfileRow]
    results: list[str]
    covered: tuple[int, int]
    """Rules that a check of the shown reports tested, and all rules of the contract."""
    overview: Overview
    groups: list[dict[str, Any]] = field(default_factory=list)

    @property
    def views(self) -> list[tuple[str, str]]:
        """The names and titles of the views that have something to show."""
        overview = self.overview
        return [
            (name, title)
            for name, title, content in (
                ("overview", "Overview", True),
                ("questions", "Questions", overview.groups),
                ("runs", "Runs", overview.groups),
                ("conformance", "Conformance", overview.conformance),
                ("mutation", "Mutation", overview.mutation),
                ("fuzzing", "Fuzzing", overview.fuzzing),
                ("benches", "Benchmarks", overview.benches),
                ("replays", "Replay", overview.replays),
                ("wmb", "WMB-100K", overview.wmb),
            )
            if content
        ]


_SHOWN = 10


def build_page(overview: Overview) -> Page:
    """Compute the static parts."""
    found = statements(overview)
    sdks = sorted({run.name for group in overview.groups for run in group.current})
    tested = {
        rule
        for report in overview.conformance
        for sdk in report.sdks
        for case in sdk.cases
        for check in case.checks
        if check.result is not Result.NOT_APPLICABLE
        for rule in check.rules
    }
    return Page(
        verdict=found[0],
        statements=found,
        sdks=sdks,
        matrix=[_matrix_row(number, group, sdks) for number, group in enumerate(overview.groups)],
        regressions=_regressions(overview),
        profiles=[row for report in overview.conformance for row in _profiles(report)],
        results=[result.value for result in Result],
        covered=(len(tested & rules().keys()), len(rules())),
        overview=overview,
        groups=[_group_view(group) for group in overview.groups],
    )


def group_meta(group: RunGroup) -> dict[str, Any]:
    """What the script needs of a group besides its questions."""
    return {
        "name": group.name,
        "scenario": group.runs[0].summary.scenario,
        "runs": [_run_meta(run) for run in group.current],
        "baselines": sorted(group.changes),
    }


def _run_meta(run: LoadedRun) -> dict[str, Any]:
    summary = run.summary
    return {
        "name": run.name,
        "id": summary.run_id,
        "brain": summary.brain,
        "version": summary.daemon.version,
        "repeat": repeat_command(summary),
        # A replay selects by a file of ids, which the reader would have to write.
        "byId": summary.scenario != SCENARIO,
    }


_SELECTIONS = ("--ids", "--limit", "--tag", "--json", "--html", "--resume", "--sdk")


def repeat_command(summary: RunSummary) -> list[str]:
    """The arguments that run the same questions of one SDK again, up to `--ids`."""
    command = summary.provenance.command[1:]
    if summary.scenario == SCENARIO:
        return ["memconform", *command]
    if command[:1] != ["run"]:
        command = ["run", "--dataset", summary.dataset, "--scenario", summary.scenario]
        command += ["--mode", summary.mode]
    kept: list[str] = []
    words = iter(command)
    sdks = []
    for word in words:
        name, equals, value = word.partition("=")
        if name in _SELECTIONS:
            value = value if equals else next(words, "")
            sdks += [value] if name == "--sdk" else []
        elif word != "--require-agreement":
            kept.append(word)
    # `all` and lists name several; the SDK itself may have been given as a path.
    own = next((sdk for sdk in sdks if summary.sdk in sdk), summary.sdk)
    return ["memconform", *kept, "--sdk", own if own != "all" else summary.sdk]


def _matrix_row(number: int, group: RunGroup, sdks: Sequence[str]) -> MatrixRow:
    by_name = {run.name: run for run in group.current}
    agreement, grade = _agreement(group)
    return MatrixRow(
        name=group.name,
        link=fragment("questions", g=number),
        differs_link=fragment("questions", g=number, differs=1),
        cells=[_cell(by_name[sdk], group, number) if sdk in by_name else None for sdk in sdks],
        agreement=agreement,
        differing=f"differ on {plural(group.differing, 'question')}" if group.differing else "",
        grade=grade,
    )


def _cell(run: LoadedRun, group: RunGroup, number: int) -> Cell:
    summary = run.summary
    measured = measured_questions(summary.counts)
    counts = f"{summary.passed} of {summary.total}"
    if measured < summary.total:
        counts = missing_questions(summary.counts)
    grade = Grade.GOOD
    if any(not floor.held for floor in summary.floors):
        grade = Grade.BAD
    if summary.incident is not None or measured < summary.total:
        grade = min(grade, Grade.UNKNOWN)
    if summary.incident is not None:
        grade = Grade.UNKNOWN
    change = ""
    if (diff := group.changes.get(run.name)) is not None:
        change = f"+{len(diff.fixes)} -{len(diff.regressions)} since the baseline"
    return Cell(
        pass_rate_text(summary, brief=True),
        counts,
        grade,
        fragment("questions", g=number, sdk=run.name),
        change,
    )


def _agreement(group: RunGroup) -> tuple[str, Grade]:
    if group.parity is None:
        return group.not_compared, Grade.UNKNOWN if group.not_compared else Grade.GOOD
    verdict = group.parity.verdict.value
    grades = {"identical": Grade.GOOD, "parity": Grade.GOOD, "drift": Grade.BAD}
    grade = grades.get(verdict, Grade.UNKNOWN)
    return verdict, Grade.NOTED if grade is Grade.GOOD and group.differing else grade


def _regressions(overview: Overview) -> list[Regression]:
    return [
        Regression(
            sdk,
            f"{group.name}, since {change.first}",
            [
                (question, fragment("question", g=number, id=question))
                for question in change.regressions[:_SHOWN]
            ],
            max(0, len(change.regressions) - _SHOWN),
        )
        for number, group in enumerate(overview.groups)
        for sdk, change in group.changes.items()
        if change.regressions
    ]


def _profiles(report: ConformReport) -> list[ProfileRow]:
    known = rules()
    rows = []
    for sdk in report.sdks:
        counts: dict[str, dict[str, int]] = {}
        for case in sdk.cases:
            for check in case.checks:
                profiles = {known[rule].profile for rule in check.rules if rule in known} or {None}
                profile = min((p.value for p in profiles if p is not None), default="every daemon")
                of = counts.setdefault(profile, dict.fromkeys((r.value for r in Result), 0))
                of[check.result.value] += 1
        order = [*(profile.value for profile in Profile), "every daemon"]
        for profile in sorted(counts, key=order.index):
            of = counts[profile]
            grade = Grade.GOOD
            if of["untestable"] or of["error"]:
                grade = Grade.UNKNOWN
            if of["fail"] or of["xpass"]:
                grade = Grade.BAD
            rows.append(ProfileRow(sdk.sdk, profile, of, grade))
    return rows


def _group_view(group: RunGroup) -> dict[str, Any]:
    settings = group.runs[0].summary.provenance.settings
    return {
        "name": group.name,
        "parity": group.parity,
        "not_compared": group.not_compared,
        "runs": [_run_view(run) for run in group.current],
        "changes": group.changes,
        "settings": {
            key: value
            for key, value in sorted(settings.items())
            if value not in (None, {}, 0, False) and key not in ("build_hash", "dataset_sha256")
        },
    }


def _run_view(run: LoadedRun) -> dict[str, Any]:
    summary = run.summary
    latency = summary.latency
    return {
        "name": run.name,
        "summary": summary,
        "rate": pass_rate_text(summary, brief=True),
        "latencies": [
            (title, values)
            for title, values in (
                ("first event", latency.first_event),
                ("first delta", latency.first_delta),
                ("done", latency.done),
            )
            if values is not None
        ],
    }


def bench_row(bench: BenchReport, row: Row) -> dict[str, str]:
    """The metrics of a bench's row as text, with intervals."""
    del bench
    if not row.measured or ALL not in row.views:
        return {}
    return {
        name: f"{value.value:.1f} ({value.low:.1f} to {value.high:.1f})"
        for name, value in row.views[ALL].metrics.items()
    }
