"""One conformance report, joined from those of its shards."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from pydantic import BaseModel

from memconform.conformance.known_failures import KnownFailure, stale_causes
from memconform.conformance.results import ConformReport, SdkResult, verdict
from memconform.conformance.session import REPORT, write_suite_report
from memconform.datasets.sharding import ShardRecord
from memconform.errors import ExitCode, UsageError
from memconform.storage.body_files import FOLDER as BODIES
from memconform.storage.folders import RunFolder, new_run_id
from memconform.storage.provenance import Origin, PartOrigin
from memconform.storage.result_file import reading
from memconform.storage.sink import copy_written


class DigestedVariant(Protocol):
    """A case with one combination of the values of its matrix, of daemons or of clients."""

    @property
    def id(self) -> str: ...

    @property
    def case(self) -> BaseModel: ...

    @property
    def variables(self) -> Mapping[str, object]: ...


def case_digest(variants: Iterable[DigestedVariant]) -> str:
    """SHA-256 of case variants: of their ids, and of what they send and expect."""
    digest = sha256()
    for variant in variants:
        content = [variant.id, variant.case.model_dump_json(), repr(variant.variables)]
        digest.update(repr(content).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class ConformPart:
    """The report of a shard, or of several that were joined before."""

    folder: Path
    report: ConformReport

    @classmethod
    def read_result(cls, path: Path) -> "ConformPart":
        """Read a `conform.json`; raises UsageError `result_unreadable`."""
        hint = f"give the run's folder below results/runs, or its {REPORT}"
        with reading(path, "the report of memconform conform", hint):
            return cls(path.parent, ConformReport.model_validate_json(path.read_bytes()))

    @property
    def name(self) -> str:
        return str(self.folder)

    @property
    def subject(self) -> str:
        """What is joined with parts of the same subject alone."""
        return f"{self.report.suite} {', '.join(self.report.sdk_references)}"

    @property
    def shard(self) -> ShardRecord | None:
        return None if self.report.sharded is None else self.report.sharded.shard

    @property
    def identity(self) -> Mapping[str, object]:
        """What parts must have in common."""
        report, sharded = self.report, self.report.sharded
        return {
            "version of memconform": report.harness_version,
            "contract": report.contract,
            "--sdk": report.sdk_references,
            "variables": report.variables,
            "builds": None if sharded is None else sharded.builds,
            "cases": None if sharded is None else sharded.all_sha256,
            "known failures": None if sharded is None else sharded.known,
            "skipped": [skipped.model_dump() for skipped in report.skipped],
            "claims": {
                sdk.sdk: [sdk.profiles, sdk.modes, sdk.readers, sdk.embedders]
                for sdk in report.sdks
            },
        }

    @property
    def origins(self) -> list[PartOrigin]:
        """Where it comes from; of what was joined before, where each part of it does."""
        report, sharded = self.report, self.report.sharded
        if report.parts or self.shard is None or sharded is None:
            return report.parts
        return [
            PartOrigin.of_part(sharded.origin, report.run, self.shard.numbers, report.started_at)
        ]


def merge_reports(
    parts: Sequence[ConformPart],
    shard: ShardRecord | None,
    output: Path,
    *,
    command: Sequence[str],
) -> tuple[ConformReport, RunFolder, str]:
    """Write the report of all parts together, as if one run had had their cases.

    Args:
        parts: of one selection of cases, SDKs and known failures.
        shard: what the report is a part of; None if it is whole.
        output: the results folder to write to.
        command: the command line, for the report.

    Returns:
        The report, its folder, and which cases it has, in words.

    Raises:
        UsageError: if two parts have the same case (`result_unreadable`).
        ResultsError: if the report cannot be written.
    """
    started = datetime.now(UTC)
    reports = [part.report for part in parts]
    sharded = [report.sharded for report in reports if report.sharded is not None]
    places = {
        case: place
        for each in sharded
        for case, place in zip(each.cases, each.shard.places or (), strict=True)
    }
    if len(places) < sum(len(each.cases) for each in sharded):
        raise UsageError(
            f"{', '.join(part.name for part in parts)} have cases in common",
            code="result_unreadable",
            hint=f"give each {REPORT} as `conform` wrote it",
        )
    known = [KnownFailure.model_validate(entry) for entry in sharded[0].known]
    complete = shard is None and sharded[0].complete
    sdks = []
    for number in range(len(reports[0].sdks)):
        joined = _joined([report.sdks[number] for report in reports], places)
        stale = stale_causes(joined, known, complete=complete)
        sdks.append(joined.model_copy(update={"stale_known": stale}))
    code = verdict(sdks, [ExitCode(r.exit_code) for r in reports if r.skipped], shard)
    run = RunFolder(
        output, new_run_id(started, "-".join(sdk.sdk for sdk in sdks), reports[0].suite)
    )
    cases = sorted(places, key=lambda case: places[case])
    report = reports[0].model_copy(
        update={
            "run": run.path.name,
            "started_at": started,
            "finished_at": datetime.now(UTC),
            **dict(Origin.of(command)),
            "exit_code": int(code),
            "sdks": sdks,
            "parts": [origin for part in parts for origin in part.origins],
            "sharded": None
            if shard is None
            else sharded[0].model_copy(update={"shard": shard, "cases": cases}),
        }
    )
    for part in parts:
        for name in ("wire", BODIES):
            for file in (part.folder / name).rglob("*"):
                if file.is_file():
                    copy_written(file, run.path / file.relative_to(part.folder))
    write_suite_report(run, report)
    labels = (sharded[0].selection, "" if shard is None else shard.label())
    return report, run, ", ".join(filter(None, labels))


def _joined(results: Sequence[SdkResult], places: Mapping[str, int]) -> SdkResult:
    """The results of one SDK together, in the order of the cases."""

    def in_order(cases: Iterable[str]) -> list[str]:
        return sorted(cases, key=lambda case: places[case])

    first = results[0]
    return first.model_copy(
        update={
            "cases": sorted(
                (case for result in results for case in result.cases),
                key=lambda case: places[case.case],
            ),
            "problems": [problem for result in results for problem in result.problems],
            "took_s": sum(result.took_s for result in results),
            **{
                name: in_order(case for result in results for case in getattr(result, name))
                for name in ("repeated", "unclaimed_reader_cases", "unclaimed_embedder_cases")
            },
        }
    )
