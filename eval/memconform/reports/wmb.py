"""WMB-100K on the terminal: what a run answered, and scores by both sets of rules."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from memconform.bench.records import BenchReport
from memconform.bench.wmb.records import LostQuestion, WmbRun, WmbScore
from memconform.datasets.wmb_names import FALSE_MEMORY
from memconform.printing.plurals import listed, plural
from memconform.reports.bench_notes import behaviour_table
from memconform.reports.console import table_console
from memconform.reports.fitted_table import fitting_table
from memconform.reports.rates import NO_FIGURE, NOT_MEASURED, format_bounds
from memconform.reports.run_judges import judging_lines
from memconform.scoring.statuses import QuestionStatus
from memconform.scoring.wmb import (
    SCRIPT_CHARACTERS,
    TYPES,
    ProfileScore,
    Range,
    WmbAccuracy,
)

_SHOWN = 10
_WIDE = 110
"""Characters of a line from which the table has the profiles without disputed questions."""
_INDEXES: Mapping[str, str] = {"isolated": "one index", "category": "an index a category"}


def show_run(run: WmbRun, report: BenchReport, *, quiet: bool = False) -> None:
    """Print to standard error how long it took, what a system was seen to do, and what was lost."""
    console = table_console(stderr=True)
    if not quiet:
        if run.ingest_s is not None:
            stored = plural(run.documents, "document", spec=",")
            console.print(f"{run.system}: {stored} stored in {run.ingest_s:.1f} s")
        if (latency := run.latency_ms) is not None:
            console.print(f"latency: p50 {latency.p50:.0f} ms, p95 {latency.p95:.0f} ms")
        if (behaviour := behaviour_table(report)) is not None:
            console.print(fitting_table(*behaviour, console.width, names=1)[0])
    for line in (*_incident_lines(run), *_lost_lines(run.lost)):
        console.print(line, style="bold red")
    if run.lost:
        console.print(f"--resume {run.run_id} asks them again", style="bold red")


def run_banner(run: WmbRun) -> str:
    """One line: the system, and how many of the asked questions have an answer."""
    asked = run.rows + len(run.lost)
    strategy = f", {run.strategy}" if run.strategy else ""
    system = f"{run.system}{strategy}, {_INDEXES[run.index]}"
    return f"wmb, {system}: {run.rows} of {plural(asked, 'question')} answered"


def show_score(report: WmbScore, *, quiet: bool = False) -> None:
    """Print the table to standard error; `quiet` prints only what was not measured."""
    console = table_console(stderr=True)
    if not quiet:
        rows = plural(report.answers.rows, "row", spec=",")
        of = f" of {report.answers.system}" if report.answers.system else ""
        of += f", {_INDEXES[report.answers.index]}" if report.answers.index else ""
        console.print(f"WMB-100K, {rows}{of}; {report.label}", style="bold")
        header, cells = score_cells(report)
        columns = len(header) if console.width >= _WIDE else len(report.profiles) + 2
        table, _ = fitting_table(
            header[:columns], [row[:columns] for row in cells], console.width, names=columns
        )
        console.print(table)
        prompts = ", official prompt" if report.settings.prompts == "official" else ""
        console.print(f"judging{prompts}, prompt {report.judging.prompt}:")
        for line in judging_lines(report.judging):
            console.print(f"  {line}")
    for line in _faults(report):
        console.print(line, style="bold red")
    for line in () if quiet else _notices(report):
        console.print(line, style="yellow")


def score_banner(report: WmbScore) -> Iterator[str]:
    """One line for each profile: score and grade, or bounds."""
    for name, profile in report.profiles.items():
        grade = f", {profile.grade}" if profile.grade else ""
        yield f"wmb, {name}: {_points(profile.score)}{grade} ({report.label})"


_RULES: Sequence[tuple[str, Callable[[ProfileScore], str], str]] = (
    (
        "score",
        lambda profile: _points(profile.score),
        "negative scores are not clamped to 0",
    ),
    ("grade", lambda profile: profile.grade or NO_FIGURE, "script: has none"),
    (
        "Part B",
        lambda profile: _accuracy(profile.part_b),
        "readme: all S1; script: rows of S1 to S7",
    ),
    (
        "false memories",
        lambda profile: (
            f"{profile.false_memory.false_positives} of {profile.false_memory.probes},"
            f" {_minus(profile.false_memory.penalty)}"
        ),
        "readme: probes of Part B; script: of both parts, if answered",
    ),
    (
        "speed",
        lambda profile: f"{_minus(profile.speed.penalty)} for {profile.speed.answers} answers",
        "readme: S1 and probes of Part B, from 300 ms; script: every row, above 300 ms",
    ),
    (
        "p50, p95 ms",
        lambda profile: f"{_latency(profile.speed.p50)}, {_latency(profile.speed.p95)}",
        "of the rows that pay for speed",
    ),
    (
        "Part A, apart",
        lambda profile: _accuracy(profile.part_a),
        "readme: all S1 of Part A; script: rows of Part A",
    ),
)


def score_cells(report: WmbScore) -> tuple[list[str], list[list[str]]]:
    """The header and the rows of the table: profiles, their rules, and profiles of the errata.

    The last, of which a notice has the scores, are omitted on a narrow terminal.
    """
    profiles, undisputed = list(report.profiles.values()), list(report.undisputed.values())
    cells = [
        [name, *map(cell, profiles), rule, *map(cell, undisputed)] for name, cell, rule in _RULES
    ]
    types = dict.fromkeys(name for profile in profiles for name in profile.by_type)
    for name in sorted(types, key=lambda name: TYPES.index(name) if name in TYPES else len(TYPES)):
        rule = "readme: unanswered is wrong; script: not counted"
        if name == FALSE_MEMORY:
            rule = "right if nothing was returned"
        raw, rest = (
            [_accuracy(each.by_type.get(name)) for each in group]
            for group in (profiles, undisputed)
        )
        cells.append([name, *raw, rule, *rest])
    cells.append(
        [
            "judges read",
            *(
                "everything" if p.profile == "readme" else f"{SCRIPT_CHARACTERS:,} chars"
                for p in profiles
            ),
            "the script cuts memories off",
            *("" for _ in undisputed),
        ]
    )
    names = (f"{name}, undisputed" for name in report.undisputed)
    return ["", *report.profiles, "rule", *names], cells


def _points(points: Range | None) -> str:
    if points is None:
        return NOT_MEASURED
    return (
        format_bounds(points.low, points.high, ".1f")
        if points.value is None
        else (f"{points.value:.1f}")
    )


def _minus(penalty: Range) -> str:
    if not penalty.high:
        return "0"
    if penalty.value is None:
        return format_bounds(-penalty.high, -penalty.low or 0.0, ".2f")
    return f"-{penalty.value:.2f}"


def _accuracy(accuracy: WmbAccuracy | None) -> str:
    if accuracy is None or accuracy.percent is None:
        return NO_FIGURE
    return f"{_points(accuracy.percent)} % of {accuracy.total}"


def _latency(milliseconds: float | None) -> str:
    return NO_FIGURE if milliseconds is None else f"{milliseconds:.0f}"


def _incident_lines(report: WmbRun | WmbScore) -> Iterator[str]:
    if report.incident is not None:
        yield f"{report.incident.code}: {report.incident.message}"
        yield from (f"  | {line}" for line in report.incident.excerpt.splitlines()[-_SHOWN:])
        if report.incident.hint:
            yield f"  try: {report.incident.hint}"


def _lost_lines(lost: Sequence[LostQuestion]) -> Iterator[str]:
    by_code: dict[str, list[LostQuestion]] = {}
    for each in lost:
        by_code.setdefault(each.code, []).append(each)
    for code, questions in by_code.items():
        names = listed([each.question for each in questions])
        yield f"{NOT_MEASURED}, {code}: {names}; the first: {questions[0].message}"


def _faults(report: WmbScore) -> Iterator[str]:
    """What kept the scores from being numbers."""
    yield from _incident_lines(report)
    if report.incident is not None:
        yield f"  --resume {report.run_id} keeps the verdicts"
    yield from _lost_lines(report.answers.lost)
    yield from _lost_lines(report.answers.failed)
    if report.answers.empty:
        yield (
            f"no row of {listed(report.answers.empty)} has a memory: was it stored? An index that"
            " lost it answers like this"
        )
    if report.answers.missing:
        yield f"without a row, wrong by the readme: {listed(report.answers.missing)}"
    for name, profile in report.profiles.items():
        expected, measured, _ = profile.counts()
        if measured < expected:
            questions = plural(expected, "question", spec=",")
            yield f"{NOT_MEASURED}: {expected - measured:,} of {questions} by the {name}"
    for status in (QuestionStatus.JUDGE_ERROR, QuestionStatus.NOT_RUN):
        if count := report.statuses.get(status, 0):
            yield f"{plural(count, 'answer')} {status.value}, {NOT_MEASURED}: scores are bounds"
    yield from (f"  {failure}" for failure in report.failures)


def _notices(report: WmbScore) -> Iterator[str]:
    answers = report.answers
    if report.errata is not None:
        reasons = ", ".join(f"{count} {reason}" for reason, count in report.omitted.items())
        scores = ", ".join(f"{k} {_points(each.score)}" for k, each in report.undisputed.items())
        omitted = plural(sum(report.omitted.values()), "question")
        yield f"undisputed: {scores}, without {omitted} ({reasons})"
    if answers.not_asked:
        yield f"left out of the run: {listed(answers.not_asked)}"
    if answers.unknown:
        yield f"not questions of the benchmark, skipped: {listed(answers.unknown)}"
    if answers.repeated:
        yield f"repeated, counted once by the readme: {listed(answers.repeated)}"
    if answers.contradicted:
        yield f"answered differently twice, the last counts: {listed(answers.contradicted)}"
    if answers.reordered:
        yield "the rows are in another order than the questions, which affects no score"
    unknown = [p.speed.unmeasured for p in report.profiles.values() if p.profile == "readme"]
    if sum(unknown):
        yield f"{plural(sum(unknown), 'latency')} missing: the speed penalty is shown as bounds"
    yield "not to be compared with scores by other judges or rules"
