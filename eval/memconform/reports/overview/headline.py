"""The verdict on all results in one sentence, and the sentences behind it. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from urllib.parse import urlencode

from memconform.bench.records import BenchReport
from memconform.conformance.mutation.results import Fate, MutationReport
from memconform.conformance.results import ConformReport, Result, SdkResult
from memconform.datasets.sharding import ShardRecord
from memconform.errors import ExitCode
from memconform.fuzzing.results import FuzzReport
from memconform.load.records import LoadReport
from memconform.printing.plurals import plural
from memconform.reports.bench_notes import primary_figure
from memconform.reports.overview.groups import RunGroup
from memconform.reports.overview.overview import Overview
from memconform.reports.overview.regressions import conformance_changes
from memconform.reports.rates import (
    is_complete,
    is_missed,
    measured_questions,
    missing_questions,
)
from memconform.results.loaded_runs import LoadedRun
from memconform.results.records import ParityReport
from memconform.stats.paired_comparison import ParityVerdict


def fragment(view: str, **parameters: object) -> str:
    """The fragment of the page's address that leads to a view, without `#`."""
    return f"/{view}?{urlencode(parameters)}" if parameters else f"/{view}"


class Grade(IntEnum):
    """How good a finding is, from worst to best."""

    BAD = 0
    """A measured failure: below a floor, drift, a violated rule, a regression."""
    UNKNOWN = 1
    """Something was not measured or decided, which is neither good nor bad."""
    NOTED = 2
    """A difference that no verdict depends on."""
    GOOD = 3
    CONTROL = 4
    """What a control scores, which is good or bad of none."""

    @property
    def label(self) -> str:
        return ("fails", "unknown", "differs", "ok", "control")[self]


@dataclass(frozen=True, slots=True)
class Statement:
    """One finding as a sentence, without its full stop, and the part of the report behind it."""

    grade: Grade
    text: str
    link: str = ""
    """Fragment of the page's address, without `#`."""
    note: str = ""
    """What qualifies it."""
    figure: str = ""
    """The primary figure, for where there is room for a few words."""

    def sentence(self) -> str:
        """The text with its note, on one line."""
        return f"{self.text}; {self.note}" if self.note else self.text


def statements(overview: Overview) -> list[Statement]:
    """Every finding, the worst first; the first one is the verdict, and there is always one.

    A regression comes before other failures, because it is news.
    """
    results = [
        *_regressions(overview),
        *(s for group in overview.groups if not group.is_control for s in _of_group(group)),
        *(s for report in overview.conformance for s in _conformance(report)),
        *(s for report in overview.mutation for s in _mutation(report)),
        *(s for report in overview.fuzzing for s in _fuzzing(report)),
        *(s for report in overview.benches for s in _bench(report)),
        *(s for report in overview.loads for s in _load(report)),
        *_replays(overview),
        *(s for report in overview.parities for s in _parity(report)),
        *_wmb(overview),
        *(s for group in overview.groups if group.is_control for s in _controls(group)),
        *(Statement(Grade.UNKNOWN, f"skipped: {skip}") for skip in overview.results.skipped_sdks),
        *(Statement(Grade.UNKNOWN, f"not shown: {line}") for line in overview.not_shown),
    ]
    if not results:
        results = [Statement(Grade.UNKNOWN, "these results have no verdict")]
    return sorted(results, key=lambda statement: statement.grade)


_VERDICTS = {
    ParityVerdict.DRIFT: Grade.BAD,
    ParityVerdict.INCONCLUSIVE: Grade.UNKNOWN,
    ParityVerdict.PARITY: Grade.NOTED,
    ParityVerdict.IDENTICAL: Grade.GOOD,
}


def parity_grade(verdict: ParityVerdict) -> Grade:
    """How good a parity verdict is."""
    return _VERDICTS[verdict]


def _regressions(overview: Overview) -> Iterator[Statement]:
    for group in overview.groups:
        for sdk, change in group.changes.items():
            link = fragment("questions", g=group.key, sdk=sdk, regressed=1)
            if change.regressions:
                count = plural(len(change.regressions), "question")
                text = f"{sdk} fails {count} of {group.name} that its baseline passed"
                yield Statement(Grade.BAD, text, link)
            lost = len(change.not_measured) + len(change.removed)
            if lost:
                text = f"{sdk} is not compared with its baseline on {plural(lost, 'question')}"
                yield Statement(Grade.UNKNOWN, f"{text} of {group.name}", link)
    compared = any(group.changes for group in overview.groups)
    if overview.baselines.sources and not compared and not conformance_changes(overview):
        yield Statement(Grade.UNKNOWN, "no result could be compared with the baseline")
    for changes in conformance_changes(overview):
        link = fragment("conformance", sdk=changes.sdk, only="regressed")
        if changes.regressed:
            count = plural(len(changes.regressed), "check")
            text = f"{changes.sdk} fails {count} of the contract that its baseline passed"
            yield Statement(Grade.BAD, text, link)
        if changes.lost:
            count = plural(len(changes.lost), "check")
            text = f"{changes.sdk} could not be tested in {count} that its baseline passed"
            yield Statement(Grade.UNKNOWN, text, link)


def _of_group(group: RunGroup) -> Iterator[Statement]:
    for run in group.current:
        yield from _of_run(group, run)
    if group.parity is not None:
        yield from _agreement(group, group.parity)
        return
    [run] = group.current
    summary = run.summary
    regressed = any(change.regressions for change in group.changes.values())
    if is_complete(summary) and summary.exit_code == ExitCode.OK and not regressed:
        passes = f"{summary.passed} of {plural(summary.total, 'question')}"
        link = fragment("questions", g=group.key)
        yield Statement(Grade.GOOD, f"{run.name} passes {passes} of {group.name}", link)


def _controls(group: RunGroup) -> Iterator[Statement]:
    """What arms without a system score."""
    for run in group.current:
        yield from _of_run(group, run)
        if is_complete(run.summary):
            passes = f"{run.summary.passed} of {plural(run.summary.total, 'question')}"
            link = fragment("questions", g=group.key, sdk=run.name)
            text = f"{run.name}, a control, passes {passes} of {group.name}"
            yield Statement(Grade.CONTROL, text, link)


def _of_run(group: RunGroup, run: LoadedRun) -> Iterator[Statement]:
    """What was not measured, and floors that are missed."""
    summary = run.summary
    measured = measured_questions(summary.counts)
    link = fragment("questions", g=group.key, sdk=run.name)
    if summary.incident is not None:
        text = f"{run.name} was not measured on {group.name}: {summary.incident.code}"
        yield Statement(Grade.UNKNOWN, text, link)
    elif not summary.total:
        text = f"{run.name} was asked no question of {group.name} that applies"
        yield Statement(Grade.UNKNOWN, text, link)
    elif measured < summary.total:
        missing = plural(summary.total - measured, "question")
        yield Statement(
            Grade.UNKNOWN,
            f"{run.name} was not measured on {missing} of {group.name}"
            f" ({missing_questions(summary.counts)})",
            fragment("questions", g=group.key, sdk=run.name, status="unmeasured"),
        )
    if shard := summary.provenance.settings.get("shard"):
        label = ShardRecord.model_validate(shard).label()
        text = f"{run.name} on {group.name} is {label} alone, which decides no floor"
        yield Statement(Grade.UNKNOWN, text, link)
    missed = [floor for floor in summary.floors if is_missed(floor) and summary.incident is None]
    for floor in missed:
        tag = f" of tag {floor.tag}" if floor.tag else ""
        yield Statement(
            Grade.BAD,
            f"{run.name} passes {floor.passed} of {floor.total} questions of {group.name}{tag},"
            f" below the floor of {floor.floor:g}",
            fragment("questions", g=group.key, sdk=run.name, status="incorrect"),
        )
    if summary.exit_code != ExitCode.OK and is_complete(summary) and not missed:
        reason = f": {summary.reasons[0]}" if summary.reasons else ""
        text = f"{run.name} ended with exit code {summary.exit_code} on {group.name}{reason}"
        yield Statement(Grade.UNKNOWN, text, link)


def _agreement(group: RunGroup, parity: ParityReport) -> Iterator[Statement]:
    link = fragment("questions", g=group.key)
    names = _listed([run.name for run in group.current])
    questions = f"{plural(parity.questions, 'question')} of {group.name}"
    if parity.verdict is ParityVerdict.IDENTICAL:
        if parity.questions:
            yield Statement(Grade.GOOD, f"{names} are identical on {questions}", link)
    elif not any(pair.contrast.compared for pair in parity.pairs):
        yield Statement(Grade.UNKNOWN, f"{names} have no question of {group.name} in common", link)
    elif not group.differing:
        text = f"{names} do not differ where all were measured, of {questions}"
        yield Statement(Grade.UNKNOWN, text, link)
    else:
        grade = min(parity_grade(parity.verdict), Grade.NOTED)
        text = f"{_who_differs(group)} {_of_differing(group, parity)}{_most_often(group)}"
        differing = fragment("questions", g=group.key, differs=1)
        yield Statement(grade, text, differing, _PARITY_NOTES[parity.verdict])


_PARITY_NOTES = {
    ParityVerdict.DRIFT: "their pass rates drift apart",
    ParityVerdict.PARITY: "their pass rates are equivalent",
    ParityVerdict.INCONCLUSIVE: "whether their pass rates agree is inconclusive",
}


def outlier(group: RunGroup) -> tuple[str, int] | None:
    """The SDK that is alone in most of the differences, and in how many of them."""
    if not group.outliers:
        return None
    name, count = group.outliers.most_common(1)[0]
    return (name, count) if count > group.differing / 2 else None


def _who_differs(group: RunGroup) -> str:
    if (alone := outlier(group)) is None:
        return f"{_listed([run.name for run in group.current])} differ"
    others = [run.name for run in group.current if run.name != alone[0]]
    return f"{alone[0]} differs from {_listed(others)}"


def _of_differing(group: RunGroup, parity: ParityReport) -> str:
    alone = outlier(group)
    count = group.differing if alone is None else alone[1]
    asked = f"{plural(parity.questions, 'question')} of {group.name}"
    if count < group.differing:
        return f"on {count} of the {group.differing} that differ, of {asked}"
    return f"on {count} of {asked}"


def _most_often(group: RunGroup) -> str:
    stages: dict[str, int] = {}
    for pair in group.parity.pairs if group.parity is not None else ():
        for stage, count in pair.stages.items():
            stages[stage] = stages.get(stage, 0) + count
    if not stages:
        return ""
    stage = max(stages, key=lambda name: stages[name])
    often = "most often " if len(stages) > 1 else ""
    return f", {often}at the stage {stage}"


def _listed(names: list[str]) -> str:
    return " and ".join([*filter(None, [", ".join(names[:-1])]), names[-1]])


def _conformance(report: ConformReport) -> Iterator[Statement]:
    for sdk in report.sdks:
        yield from _conformance_of(sdk)
    for skip in report.skipped:
        yield Statement(Grade.UNKNOWN, f"conform skipped {skip.sdk}: {skip.reason}", "/conformance")


def _conformance_of(sdk: SdkResult) -> Iterator[Statement]:
    """Sentences with the counts of the last line of `conform`: by result, of those that apply."""
    link = fragment("conformance", sdk=sdk.sdk)
    counts = sdk.counts()
    checks = plural(sdk.applicable(), "check", spec=",")
    if sdk.exit_code is ExitCode.OK:
        text = f"{sdk.sdk} honours the contract in {checks}"
        if counts[Result.XFAIL]:
            text += f" except for {plural(counts[Result.XFAIL], 'known failure', spec=',')}"
        yield Statement(Grade.GOOD, text, link)
        return
    if failed := counts[Result.FAIL]:
        yield Statement(Grade.BAD, f"{sdk.sdk} fails {failed:,} of {checks} of the contract", link)
    if listed := counts[Result.XPASS]:
        text = f"{sdk.sdk} passes {listed:,} of {checks} that a list says it fails"
        yield Statement(Grade.BAD, text, link)
    if sdk.stale_known:
        entries = plural(len(sdk.stale_known), "known failure")
        yield Statement(Grade.BAD, f"{sdk.sdk} no longer has {entries} that a list names", link)
    unknown = counts[Result.UNTESTABLE]
    if unknown or sdk.problems:
        text = f"{sdk.sdk} could not be tested in {unknown:,} of {checks} of the contract"
        yield Statement(Grade.UNKNOWN, text, link)
    if bugs := counts[Result.ERROR]:
        text = f"a bug in memconform or in a case ended {bugs:,} of {checks} of {sdk.sdk}"
        yield Statement(Grade.UNKNOWN, text, link)
    if sdk.exit_code is ExitCode.NOTHING_SELECTED:
        yield Statement(Grade.UNKNOWN, f"{sdk.sdk} passed no check of the contract", link)


def _mutation(report: MutationReport) -> Iterator[Statement]:
    survived = sum(mutant.fate is Fate.SURVIVED for mutant in report.mutants)
    untestable = sum(mutant.fate is Fate.UNTESTABLE for mutant in report.mutants)
    planted = plural(report.total, "planted defect", spec=",")
    if survived:
        text = f"the cases do not detect {survived:,} of {planted} in {report.sdk}"
        yield Statement(Grade.BAD, text, "/mutation")
    if untestable or not report.total:
        text = f"{untestable:,} of {planted} in {report.sdk} could not be tested"
        yield Statement(Grade.UNKNOWN, text, "/mutation")
    if report.false_alarms:
        alarms = plural(len(report.false_alarms), "check")
        yield Statement(Grade.BAD, f"{report.sdk} without a defect fails {alarms}", "/mutation")
    if report.total and report.killed == report.total and report.exit_code == ExitCode.OK:
        yield Statement(Grade.GOOD, f"the cases detect {planted} in {report.sdk}", "/mutation")


def _fuzzing(report: FuzzReport) -> Iterator[Statement]:
    sdks = " and ".join(report.sdks)
    against = "the contract" if report.against else "each other"
    programs = plural(report.examples, "random program", spec=",")
    found = report.disagreements or ([report.disagreement] if report.disagreement else [])
    if found:
        text = f"{sdks} disagree with {against} in {programs}, at {found[0].pointer}"
        yield Statement(Grade.BAD, text, "/fuzzing")
    elif report.exit_code == ExitCode.OK and report.examples:
        text = f"{programs} find no difference of {sdks} from {against}"
        yield Statement(Grade.GOOD, text, "/fuzzing")
    else:
        text = f"fuzz ended with exit code {report.exit_code} after {programs} on {sdks}"
        yield Statement(Grade.UNKNOWN, text, "/fuzzing")


def _load(report: LoadReport) -> Iterator[Statement]:
    for line in report.missed:
        yield Statement(Grade.BAD, f"under load, {line}", "/loads")
    for sdk in report.sdks:
        if sdk.incident is not None:
            text = f"{sdk.sdk} under load: {sdk.incident.code}: {sdk.incident.message}"
            yield Statement(Grade.UNKNOWN, text, "/loads")
        if not any(step.status == "measured" for step in sdk.steps):
            yield Statement(Grade.UNKNOWN, f"{sdk.sdk} was not measured under load", "/loads")
        elif sdk.saturation is not None:
            whole = all(step.status == "measured" for step in sdk.steps)
            grade = Grade.NOTED if whole else Grade.UNKNOWN
            yield Statement(grade, f"under load, {sdk.sdk} {sdk.saturation.statement}", "/loads")
        else:
            yield Statement(Grade.NOTED, f"{sdk.sdk} was measured in a closed loop", "/loads")


def _bench(report: BenchReport) -> Iterator[Statement]:
    missing = [row for row in report.rows if not row.measured]
    figure = "" if missing else primary_figure(report)
    if (shard := report.settings.shard) is not None:
        text = f"the bench of {report.suite} is {shard.label()} alone"
        yield Statement(Grade.UNKNOWN, text, "/benches", figure=figure)
    for row in missing:
        name = f"{row.system} {row.strategy}".strip()
        reason = f": {row.why[0]}" if row.why else ""
        text = f"{name} was not measured on {report.suite}{reason}"
        yield Statement(Grade.UNKNOWN, text, "/benches")
    for pair in report.parity:
        if pair.contrast.verdict is ParityVerdict.DRIFT:
            text = f"{pair.first} and {pair.second} drift apart in {pair.metric} of {report.suite}"
            yield Statement(Grade.BAD, text, "/benches")
    for agreement in report.alike:
        if agreement.equal < agreement.compared:
            names = _listed(agreement.systems)
            differing = plural(agreement.compared - agreement.equal, "query")
            text = f"{names} rank {differing} of {report.suite} differently, {agreement.strategy}"
            yield Statement(Grade.NOTED, text, "/benches", figure=figure)
    if report.exit_code != ExitCode.OK and not missing:
        text = f"the bench of {report.suite} ended with exit code {report.exit_code}"
        yield Statement(Grade.UNKNOWN, text, "/benches")
    elif report.rows and not missing:
        rows = plural(len(report.rows), "row")
        text = f"the bench of {report.suite} measured {rows}" + (f": {figure}" if figure else "")
        yield Statement(Grade.GOOD, text, "/benches", figure=figure)


def _replays(overview: Overview) -> Iterator[Statement]:
    """The comparison of a replay's SDKs; their questions are those of a group of runs."""
    for report in overview.replay_parity:
        grade = min(parity_grade(report.verdict), Grade.UNKNOWN if report.reasons else Grade.GOOD)
        note = report.reasons[0] if report.reasons else ""
        text = f"parity of the replay: {report.verdict.value}"
        yield Statement(grade, text, "/replays", note)


def _parity(report: ParityReport) -> Iterator[Statement]:
    names = _listed([run.name for run in report.runs])
    incomplete = bool(report.reasons) or report.exit_code not in (ExitCode.OK, ExitCode.FAILED)
    grade = min(parity_grade(report.verdict), Grade.UNKNOWN if incomplete else Grade.GOOD)
    note = report.reasons[0] if report.reasons else ""
    text = f"{names} on {report.dataset}: {report.verdict.value}"
    yield Statement(grade, text, "/comparisons", note)


def _wmb(overview: Overview) -> Iterator[Statement]:
    for score in overview.wmb:
        name = score.answers.system or score.answers.path
        unmeasured = [
            profile
            for profile, scored in score.profiles.items()
            if scored.score is None or scored.score.value is None
        ]
        complete = not unmeasured and score.exit_code == ExitCode.OK
        grade = Grade.GOOD if complete else Grade.UNKNOWN
        extent = "was measured" if complete else "was not measured completely"
        yield Statement(grade, f"WMB-100K {extent}: {name}", "/wmb")
