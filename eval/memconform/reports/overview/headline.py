"""The verdict on all results in one sentence, and the sentences behind it. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from urllib.parse import urlencode

from memconform.conformance.results import ConformReport
from memconform.errors import ExitCode
from memconform.parity.records import ParityVerdict
from memconform.printing.plurals import plural
from memconform.reports.overview.groups import RunGroup
from memconform.reports.overview.overview import Overview
from memconform.reports.rates import measured_questions, missing_questions


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

    @property
    def label(self) -> str:
        return ("fails", "not measured", "differs", "ok")[self]


@dataclass(frozen=True, slots=True)
class Statement:
    """One finding as a sentence, without its full stop, and the part of the report behind it."""

    grade: Grade
    text: str
    link: str = ""
    """Fragment of the page's address, without `#`."""
    note: str = ""
    """What qualifies it."""

    def sentence(self) -> str:
        """The text with its note, on one line."""
        return f"{self.text}; {self.note}" if self.note else self.text


def statements(overview: Overview) -> list[Statement]:
    """Every finding, the worst first; the first one is the verdict, and there is always one.

    A regression comes before other failures, because it is news.
    """
    found = [
        *_regressions(overview),
        *(s for number, group in enumerate(overview.groups) for s in _of_group(number, group)),
        *(s for report in overview.conformance for s in _conformance(report)),
        *_others(overview),
    ]
    if not found:
        found = [Statement(Grade.UNKNOWN, "these results have no verdict")]
    return sorted(found, key=lambda statement: statement.grade)


def _regressions(overview: Overview) -> Iterator[Statement]:
    for number, group in enumerate(overview.groups):
        for sdk, change in group.changes.items():
            if change.regressions:
                yield Statement(
                    Grade.BAD,
                    f"{sdk} fails {plural(len(change.regressions), 'question')} of {group.name}"
                    " that its baseline passed",
                    fragment("questions", g=number, sdk=sdk, regressed=1),
                )
    for regression in conformance_regressions(overview):
        yield Statement(
            Grade.BAD,
            f"{regression.sdk} fails {plural(len(regression.checks), 'check')} of the contract that"
            " its baseline passed",
            fragment("conformance", sdk=regression.sdk, only="regressed"),
        )


@dataclass(frozen=True, slots=True)
class ConformanceRegression:
    """Checks of an SDK that its baseline passed and that fail now."""

    sdk: str
    checks: list[str]


def conformance_regressions(overview: Overview) -> list[ConformanceRegression]:
    """Checks that fail and passed in the latest baseline of the same SDK."""
    passed: dict[str, set[str]] = {}
    for report in sorted(
        overview.baselines.of(ConformReport), key=lambda report: report.started_at
    ):
        for sdk in report.sdks:
            passed[sdk.sdk] = {
                check.id
                for case in sdk.cases
                for check in case.checks
                if check.result.value == "pass"
            }
    return [
        ConformanceRegression(sdk.sdk, checks)
        for report in overview.conformance
        for sdk in report.sdks
        if (
            checks := [
                check.id
                for case in sdk.cases
                for check in case.checks
                if check.result.value in ("fail", "error") and check.id in passed.get(sdk.sdk, ())
            ]
        )
    ]


def _of_group(number: int, group: RunGroup) -> Iterator[Statement]:
    link = fragment("questions", g=number)
    for run in group.current:
        summary = run.summary
        measured = measured_questions(summary.counts)
        if summary.incident is not None:
            text = f"{run.name} was not measured on {group.name}: {summary.incident.code}"
            yield Statement(Grade.UNKNOWN, text, link)
        elif measured < summary.total:
            missing = plural(summary.total - measured, "question")
            yield Statement(
                Grade.UNKNOWN,
                f"{run.name} was not measured on {missing} of {group.name}"
                f" ({missing_questions(summary.counts)})",
                fragment("questions", g=number, sdk=run.name, status="unmeasured"),
            )
        for floor in summary.floors:
            if not floor.held and floor.best_rate < floor.floor:
                tag = f" of tag {floor.tag}" if floor.tag else ""
                yield Statement(
                    Grade.BAD,
                    f"{run.name} passes {floor.passed} of {floor.total} questions of {group.name}"
                    f"{tag}, below the floor of {floor.floor:g}",
                    fragment("questions", g=number, sdk=run.name, status="incorrect"),
                )
    yield from _agreement(group, number)


def _agreement(group: RunGroup, number: int) -> Iterator[Statement]:
    link = fragment("questions", g=number)
    if group.parity is None:
        if group.not_compared:
            yield Statement(Grade.UNKNOWN, f"{group.name}: not compared: {group.not_compared}")
        elif not group.changes and not group.current[0].summary.reasons:
            passes = group.current[0]
            yield Statement(
                Grade.GOOD,
                f"{passes.name} passes {passes.summary.passed} of"
                f" {plural(passes.summary.total, 'question')} of {group.name}",
                link,
            )
        return
    questions = f"{plural(group.parity.questions, 'question')} of {group.name}"
    names = " and ".join(
        (", ".join(run.name for run in group.current[:-1]), group.current[-1].name)
    )
    if group.parity.verdict is ParityVerdict.IDENTICAL:
        yield Statement(Grade.GOOD, f"{names} are identical on {questions}", link)
        return
    stage = first_stage(group)
    compared = any(pair.contrast.compared for pair in group.parity.pairs)
    if not compared:
        yield Statement(Grade.UNKNOWN, f"{names} have no question of {group.name} in common", link)
        return
    if not group.differing:
        text = f"{names} do not differ where all were measured, of {questions}"
        yield Statement(Grade.UNKNOWN, text, link)
        return
    where = f", first at the stage {stage}" if stage else ""
    who, count = group.odd.most_common(1)[0] if group.odd else ("", 0)
    if count > group.differing / 2:
        others = [run.name for run in group.current if run.name != who]
        text = f"{who} differs from {' and '.join(others)} on {count} of {questions}{where}"
    else:
        text = f"{names} differ on {group.differing} of {questions}{where}"
    is_drift = group.parity.verdict is ParityVerdict.DRIFT
    verdict = {
        ParityVerdict.DRIFT: "their pass rates drift apart",
        ParityVerdict.PARITY: "their pass rates are equivalent",
        ParityVerdict.INCONCLUSIVE: "whether their pass rates agree is inconclusive",
    }[group.parity.verdict]
    grade = Grade.BAD if is_drift else Grade.NOTED
    yield Statement(grade, text, fragment("questions", g=number, differs=1), verdict)


def first_stage(group: RunGroup) -> str:
    """The stage at which most differing questions of a group part; empty if none does."""
    stages: dict[str, int] = {}
    for pair in group.parity.pairs if group.parity is not None else ():
        for stage, count in pair.stages.items():
            stages[stage] = stages.get(stage, 0) + count
    return max(stages, key=lambda stage: stages[stage], default="")


def _conformance(report: ConformReport) -> Iterator[Statement]:
    for sdk in report.sdks:
        checks = sum(len(case.checks) for case in sdk.cases)
        code = sdk.exit_code
        link = fragment("conformance", sdk=sdk.sdk)
        if code is ExitCode.OK:
            text = f"{sdk.sdk} honours the contract in {checks:,} checks"
            yield Statement(Grade.GOOD, text, link)
            continue
        counts = {result.value: n for result, n in sdk.counts().items()}
        failed, unknown = counts["fail"], counts["untestable"] + counts["error"]
        if failed or sdk.stale_known or counts["xpass"]:
            failures = f"{failed:,} of {plural(checks, 'check', spec=',')}"
            yield Statement(Grade.BAD, f"{sdk.sdk} fails {failures} of the contract", link)
        if unknown or sdk.problems:
            text = f"{sdk.sdk} could not be tested in {plural(unknown, 'check')} of the contract"
            yield Statement(Grade.UNKNOWN, text, link)


def _others(overview: Overview) -> Iterator[Statement]:
    for mutation in overview.mutation:
        score = f"{mutation.killed:,} of {plural(mutation.total, 'planted defect', spec=',')}"
        text = f"the cases detect {score} in {mutation.sdk}"
        grade = Grade.GOOD if mutation.killed == mutation.total else Grade.BAD
        yield Statement(grade, text, "/mutation")
        if mutation.false_alarms:
            alarms = plural(len(mutation.false_alarms), "check")
            yield Statement(
                Grade.BAD, f"{mutation.sdk} without a defect fails {alarms}", "/mutation"
            )
    for fuzz in overview.fuzzing:
        against = "the contract" if fuzz.against else "each other"
        programs = plural(fuzz.examples, "random program", spec=",")
        found = fuzz.disagreements or ([fuzz.disagreement] if fuzz.disagreement else [])
        if found:
            text = (
                f"{' and '.join(fuzz.sdks)} part from {against} in {programs}: {found[0].pointer}"
            )
            yield Statement(Grade.BAD, text, "/fuzzing")
        else:
            text = f"{programs} find no difference of {' and '.join(fuzz.sdks)} from {against}"
            yield Statement(Grade.GOOD, text, "/fuzzing")
    yield from _measured(overview)


_VERDICTS = {ParityVerdict.DRIFT: Grade.BAD, ParityVerdict.INCONCLUSIVE: Grade.UNKNOWN}
"""Every other verdict is good."""


def _measured(overview: Overview) -> Iterator[Statement]:
    """Benches, replays, scores and comparisons of their own."""
    for bench in overview.benches:
        missing = [row for row in bench.rows if not row.measured]
        for row in missing:
            name = f"{row.system} {row.strategy}".strip()
            reason = f": {row.why[0]}" if row.why else ""
            text = f"{name} was not measured on {bench.suite}{reason}"
            yield Statement(Grade.UNKNOWN, text, "/benches")
        if len(missing) < len(bench.rows):
            rows = plural(len(bench.rows) - len(missing), "row")
            yield Statement(Grade.GOOD, f"the bench of {bench.suite} measured {rows}", "/benches")
    for replay in overview.replays:
        if replay.overall_score is None:
            missing_count = plural(replay.questions_run - replay.measured, "question")
            text = f"the replay did not measure {replay.sdk} on {missing_count}"
            yield Statement(Grade.UNKNOWN, text, "/replays")
        else:
            text = f"{replay.sdk} scores {replay.overall_score:.3f} in the replay of LongMemEval"
            yield Statement(Grade.GOOD, text, "/replays")
    for replay_parity in overview.replay_parity:
        grade = _VERDICTS.get(replay_parity.verdict, Grade.GOOD)
        yield Statement(grade, f"the replays' parity: {replay_parity.verdict.value}", "/replays")
    for parity in overview.parities:
        names = ", ".join(run.name for run in parity.runs)
        text = f"{names} on {parity.dataset}: {parity.verdict.value}"
        yield Statement(_VERDICTS.get(parity.verdict, Grade.GOOD), text)
    for score in overview.wmb:
        name = score.answers.system or score.answers.path
        unmeasured = [
            profile
            for profile, of in score.profiles.items()
            if of.score is None or of.score.value is None
        ]
        grade = Grade.UNKNOWN if unmeasured else Grade.GOOD
        told = "was not measured completely" if unmeasured else "was measured"
        yield Statement(grade, f"WMB-100K {told}: {name}", "/wmb")
