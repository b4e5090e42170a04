"""What `memconform merge` does."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from memconform.bench.events import BenchFinished
from memconform.bench.merged_bench import BenchPart, merge_benches
from memconform.bench.wmb.answers_file import ANSWERS, write_merged_answers
from memconform.bench.wmb.records import WmbRun
from memconform.bench.wmb.stored_answers import run_record_of
from memconform.cli.bench.execution import agreement_code
from memconform.cli.interrupts import run_to_end
from memconform.cli.merge.command import MergeOptions
from memconform.cli.output_files import json_target
from memconform.cli.run.comparison import RunComparison
from memconform.conformance.merged_report import ConformPart, merge_reports
from memconform.datasets.sharding import ShardRecord
from memconform.errors import ExitCode, UsageError, gravest
from memconform.printing.escaping import Lines
from memconform.printing.output import echo
from memconform.printing.plurals import plural
from memconform.replay.events import ReplayFinished
from memconform.replay.merged_replay import ReplayPart, merge_parity, merge_replays
from memconform.replay.records import LmeReport
from memconform.reports.bench import show_bench
from memconform.reports.conformance import conform_banner, show_findings
from memconform.reports.lme import lme_lines, lme_readme, show_lme
from memconform.reports.machine import write_run_report
from memconform.reports.rates import banner
from memconform.reports.wmb import run_banner
from memconform.results.parts import Part, find_parts, join_parts
from memconform.runs.events import RunFinished
from memconform.runs.merged_run import RunPart, merge_runs
from memconform.stats.paired_comparison import ParityVerdict
from memconform.storage.sink import replacing

_RESULTS = Path("results")
"""Where ids of runs are looked up, and the calibrations of judges."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Parts that belong together, and what they are part of."""

    parts: Sequence[Part]
    shard: ShardRecord | None


def merge(options: MergeOptions) -> ExitCode:
    """Join parts.

    Raises:
        MemconformError: if they cannot be joined; nothing is written then.
    """
    found = find_parts(options.parts, _RESULTS)
    # Everything is checked before anything is written.
    groups = [_Group(parts, join_parts(parts, partial=options.partial)) for parts in found.values()]
    command = tuple(part.encode("utf-8", "replace").decode() for part in sys.argv)
    kinds: dict[type, list[_Group]] = {}
    for group in groups:
        kinds.setdefault(type(group.parts[0]), []).append(group)
    several = {BenchPart, ConformPart}.intersection(kinds) and len(groups) > 1
    if options.json_file is not None and (len(kinds) > 1 or several):
        raise UsageError(
            "--json writes one report, and these are results of several",
            code="bad_option",
            hint="give the parts of one command at a time",
        )
    return gravest(_JOIN[kind](options, own, command) for kind, own in kinds.items())


def _runs(options: MergeOptions, groups: Sequence[_Group], command: Sequence[str]) -> ExitCode:
    to_stderr = options.json_file == "-"
    finished: list[RunFinished] = []
    for group in groups:
        end = merge_runs(
            cast("Sequence[RunPart]", group.parts),
            group.shard,
            options.output,
            calibrated=_RESULTS,
            command=command,
        )
        finished.append(end)
        echo(f"{banner(end.summary)} -> {end.result}", err=to_stderr)
        for reason in end.summary.reasons:
            echo(Lines(f"  {reason}"), err=True)
    codes = [ExitCode(end.summary.exit_code) for end in finished]
    comparisons = []
    for alike in _alike(finished):
        comparison = RunComparison(
            alike, required=options.require_agreement, to_stderr=to_stderr, quiet=options.quiet
        )
        run_to_end(comparison.compare())
        comparison.show(())
        codes += comparison.exit_codes
        comparisons.append(comparison)
    if options.require_agreement and not comparisons:
        codes.append(ExitCode.INCONCLUSIVE)
    code = gravest(codes)
    if options.json_file is not None:
        [only] = comparisons if len(comparisons) == 1 else [None]
        with json_target(options.json_file) as target:
            write_run_report(
                target,
                [end.result for end in finished],
                code,
                agreement=None if only is None else only.agreement,
                parity=None if only is None else only.parity,
            )
    return code


def _alike(finished: Sequence[RunFinished]) -> Iterator[list[RunFinished]]:
    """The runs that several SDKs have of the same questions, asked alike."""
    groups: dict[tuple[object, ...], list[RunFinished]] = {}
    for end in finished:
        settings = end.summary.provenance.settings
        asked = (
            *(settings[name] for name in ("dataset_sha256", "questions")),
            str(settings["shard"]),
        )
        key = (end.summary.scenario, end.summary.mode, *asked)
        groups.setdefault(key, []).append(end)
    return (group for group in groups.values() if len(group) > 1)


def _benches(options: MergeOptions, groups: Sequence[_Group], command: Sequence[str]) -> ExitCode:
    codes = []
    for group in groups:
        parts = cast("Sequence[BenchPart]", group.parts)
        finished = merge_benches(parts, group.shard, options.output, command=command)
        report = finished.report
        codes.append(ExitCode(report.exit_code))
        if options.require_agreement:
            codes.append(agreement_code(report))
        show_bench(report, (), dropped=(), verbose=False, quiet=options.quiet)
        for system in report.systems:
            if system.incident is not None:
                ended = f"{system.name}: {system.incident.code}: {system.incident.message}"
                echo(Lines(ended), err=True)
        measured = sum(row.measured for row in report.rows)
        rows = f"{measured} of {plural(len(report.rows), 'row')} measured"
        echo(f"{report.suite}: {rows} -> {finished.result}", err=options.json_file == "-")
        if all((part.folder / ANSWERS).is_file() for part in parts):
            codes.append(_answers(parts, finished, to_stderr=options.json_file == "-"))
        if options.json_file is not None:
            with json_target(options.json_file) as target:
                target.write_json(report)
    return gravest(codes)


def _answers(parts: Sequence[BenchPart], finished: BenchFinished, *, to_stderr: bool) -> ExitCode:
    """Write the answers of runs of WMB-100K."""
    answers = finished.result.with_name(ANSWERS)
    runs = [
        WmbRun.model_validate_json(run_record_of(part.folder / ANSWERS).read_bytes())
        for part in parts
    ]
    run = write_merged_answers(answers, runs, finished.report, finished.result)
    echo(f"{run_banner(run)} -> {answers}", err=to_stderr)
    return ExitCode(run.exit_code)


def _replays(options: MergeOptions, groups: Sequence[_Group], command: Sequence[str]) -> ExitCode:
    folder = options.output
    if folder == _RESULTS:
        # As `lme` does without --output.
        folder /= f"lme-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    if taken := sorted(folder.glob("result-*.json")):
        raise UsageError(
            f"{folder} already has {taken[0].name}",
            code="output_taken",
            hint="give a new folder as --output",
        )
    folder.mkdir(parents=True, exist_ok=True)
    parts = [cast("Sequence[ReplayPart]", group.parts) for group in groups]
    sdks = [own[0].result.sdk for own in parts]
    if twice := next((sdk for sdk in sdks if sdks.count(sdk) > 1), None):
        raise UsageError(
            f"the parts are of several replays of {twice}, whose results have one name",
            code="bad_option",
            hint="give the parts of one replay at a time",
        )
    results = [
        merge_replays(own, group.shard, folder, command=command)[0]
        for own, group in zip(parts, groups, strict=True)
    ]
    folders = list(dict.fromkeys(part.path.parent for own in parts for part in own))
    parity = merge_parity(results, folders, folder, command=command)
    codes = [ExitCode(result.exit_code) for result in results]
    codes += [ExitCode.FAILED] if parity and parity.verdict is ParityVerdict.DRIFT else []
    code = gravest(codes)
    finished = ReplayFinished(tuple(results), parity, folder, int(code))
    notes = [f"Joined of {plural(len(folders), 'folder')}: {', '.join(map(str, folders))}."]
    spent = sum(result.cost_accounting.total_usd for result in results)
    with replacing(folder / "README.md") as target:
        target.write_text(lme_readme(finished, notes, spent))
    show_lme(finished, quiet=options.quiet)
    to_stderr = options.json_file == "-"
    for line in (*lme_lines(finished), f"-> {folder}"):
        echo(line, err=to_stderr)
    if options.json_file is not None:
        with json_target(options.json_file) as target:
            target.write_json(LmeReport(exit_code=code, results=results, parity=parity))
    return code


def _reports(options: MergeOptions, groups: Sequence[_Group], command: Sequence[str]) -> ExitCode:
    codes = []
    for group in groups:
        parts = cast("Sequence[ConformPart]", group.parts)
        report, run, selection = merge_reports(parts, group.shard, options.output, command=command)
        codes.append(ExitCode(report.exit_code))
        for sdk in report.from_here(run.path).sdks:
            if not options.quiet:
                show_findings(sdk, verbose=False)
            echo(conform_banner(sdk, selection), err=options.json_file == "-")
        echo(f"-> {run.path}", err=True)
        if options.json_file is not None:
            with json_target(options.json_file) as target:
                target.write_json(report)
    return gravest(codes)


_Join = Callable[[MergeOptions, Sequence[_Group], Sequence[str]], ExitCode]
_JOIN: Mapping[type, _Join] = {
    RunPart: _runs,
    BenchPart: _benches,
    ReplayPart: _replays,
    ConformPart: _reports,
}
"""By the type of a part, what joins several of them."""
