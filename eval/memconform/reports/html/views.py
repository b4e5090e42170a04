"""What the static parts of the page show, as values that templates need not compute."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memconform.conformance.results import ConformReport, Result
from memconform.conformance.rules import rules
from memconform.contract.wire import Profile
from memconform.datasets.registry import shipped
from memconform.errors import ExitCode
from memconform.printing.plurals import plural
from memconform.reports.overview.groups import RunGroup
from memconform.reports.overview.headline import (
    Grade,
    Statement,
    fragment,
    parity_grade,
    statements,
)
from memconform.reports.overview.overview import Overview
from memconform.reports.overview.regressions import conformance_changes
from memconform.reports.rates import is_complete, is_missed, missing_questions, pass_rate_text
from memconform.results.loaded_runs import LoadedRun
from memconform.results.scored_run import SCENARIO
from memconform.runs.results import RunSummary
from memconform.scoring.statuses import QuestionStatus


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
    compared: str
    """What was compared with a baseline."""
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
                ("loads", "Load", overview.loads),
                ("replays", "Replay", overview.replays or overview.replay_parity),
                ("comparisons", "Comparisons", overview.parities),
                ("wmb", "WMB-100K", overview.wmb),
            )
            if content
        ]


_SHOWN = 10
_UNTESTED = (Result.NOT_APPLICABLE, Result.UNTESTABLE, Result.ERROR)


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
        if check.result not in _UNTESTED
        for rule in check.rules
    }
    return Page(
        verdict=found[0],
        statements=found,
        sdks=sdks,
        matrix=[_matrix_row(group, sdks) for group in overview.groups],
        regressions=_regressions(overview),
        compared=_compared(overview),
        profiles=[row for report in overview.conformance for row in _profiles(report)],
        results=[result.value for result in Result],
        covered=(len(tested & rules().keys()), len(rules())),
        overview=overview,
        groups=[_group_view(group) for group in overview.groups],
    )


def group_meta(group: RunGroup) -> dict[str, Any]:
    """What the script needs of a group besides its questions."""
    return {
        "key": group.key,
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


_DROPPED = ("--ids", "--limit", "--tag", "--json", "--resume", "--sdk")
_DROPPED_FLAGS = ("--html", "--require-agreement", "--quiet")
"""Flags without a value."""


def repeat_command(summary: RunSummary) -> list[str]:
    """The arguments that run the same questions of one SDK again, up to `--ids`."""
    command = summary.provenance.command[1:]
    if summary.scenario == SCENARIO:
        return ["memconform", *command]
    if command[:1] != ["run"]:
        # The name of a file is not where it is.
        path = summary.provenance.dataset_path
        dataset = summary.dataset if summary.dataset in shipped() or not path else path
        command = ["run", "--data", dataset, "--scenario", summary.scenario]
        command += ["--mode", summary.mode]
    kept, sdks = _without_selection(command)
    reference = summary.provenance.sdk_reference or _reference(summary.sdk, sdks)
    return ["memconform", *kept, "--sdk", reference]


def _without_selection(command: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words of a command without those that select questions, and the values of --sdk."""
    kept: list[str] = []
    sdks: list[str] = []
    words = iter(command)
    for word in words:
        name, equals, value = word.partition("=")
        if name in _DROPPED:
            value = value if equals else next(words, "")
            sdks += [value] if name == "--sdk" else []
        elif word not in _DROPPED_FLAGS:
            kept.append(word)
    return kept, sdks


def _reference(sdk: str, references: Sequence[str]) -> str:
    """How the command named an SDK: by its name, by `all`, or by the path of its sdk.toml."""
    if sdk in references or not references:
        return sdk
    paths = [reference for reference in references if "/" in reference or ":" in reference]
    by_folder = [path for path in paths if Path(path.removesuffix("/sdk.toml")).name == sdk]
    if by_folder:
        return by_folder[0]
    # The only path is this SDK's, whatever its folder is called.
    return paths[0] if len(paths) == 1 else sdk


def _matrix_row(group: RunGroup, sdks: Sequence[str]) -> MatrixRow:
    by_name = {run.name: run for run in group.current}
    agreement, grade = _agreement(group)
    return MatrixRow(
        name=group.name,
        link=fragment("questions", g=group.key),
        differs_link=fragment("questions", g=group.key, differs=1),
        cells=[_cell(by_name[sdk], group) if sdk in by_name else None for sdk in sdks],
        agreement=agreement,
        differing=f"differ on {plural(group.differing, 'question')}" if group.differing else "",
        grade=grade,
    )


def _cell(run: LoadedRun, group: RunGroup) -> Cell:
    summary = run.summary
    counts = f"{summary.passed} of {summary.total}"
    grade = Grade.GOOD if summary.exit_code == ExitCode.OK else Grade.UNKNOWN
    if not is_complete(summary):
        grade = Grade.UNKNOWN
        counts = missing_questions(summary.counts) or counts
    if summary.incident is None and any(is_missed(floor) for floor in summary.floors):
        grade = Grade.BAD
    link = fragment("questions", g=group.key, sdk=run.name)
    changes = _changes_text(group, run.name)
    return Cell(pass_rate_text(summary, brief=True), counts, grade, link, changes)


def _changes_text(group: RunGroup, sdk: str) -> str:
    change = group.changes.get(sdk)
    if change is None:
        return ""
    text = f"+{len(change.fixes)} -{len(change.regressions)} since the baseline"
    lost = len(change.not_measured) + len(change.removed)
    return f"{text}, {lost} not compared" if lost else text


def _agreement(group: RunGroup) -> tuple[str, Grade]:
    if group.parity is None:
        return "", Grade.GOOD
    grade = parity_grade(group.parity.verdict)
    return group.parity.verdict.value, min(grade, Grade.NOTED) if group.differing else grade


def _regressions(overview: Overview) -> list[Regression]:
    questions = [
        Regression(
            sdk,
            f"{group.name}, since {change.first}",
            [
                (question, fragment("question", g=group.key, id=question))
                for question in change.regressions[:_SHOWN]
            ],
            max(0, len(change.regressions) - _SHOWN),
        )
        for group in overview.groups
        for sdk, change in group.changes.items()
        if change.regressions
    ]
    checks = [
        Regression(
            changes.sdk,
            "the contract",
            [
                (check, fragment("conformance", sdk=changes.sdk, only="regressed"))
                for check in changes.regressed[:_SHOWN]
            ],
            max(0, len(changes.regressed) - _SHOWN),
        )
        for changes in conformance_changes(overview)
        if changes.regressed
    ]
    return [*questions, *checks]


def _compared(overview: Overview) -> str:
    """What was compared with a baseline; empty if nothing was."""
    questions = sum(
        change.contrast.compared for group in overview.groups for change in group.changes.values()
    )
    checks = sum(changes.compared for changes in conformance_changes(overview))
    parts = [plural(questions, "question", spec=",")] if questions else []
    parts += [plural(checks, "check", spec=",")] if checks else []
    return " and ".join(parts)


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
            if of["untestable"] or of["error"] or not of["pass"]:
                grade = Grade.UNKNOWN
            if of["fail"] or of["xpass"]:
                grade = Grade.BAD
            rows.append(ProfileRow(sdk.sdk, profile, of, grade))
    return rows


def _group_view(group: RunGroup) -> dict[str, Any]:
    settings = group.runs[0].summary.provenance.settings
    return {
        "key": group.key,
        "name": group.name,
        "statuses": [
            status
            for status in QuestionStatus
            if any(run.summary.counts.get(status) for run in group.current)
        ],
        "parity": group.parity,
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
