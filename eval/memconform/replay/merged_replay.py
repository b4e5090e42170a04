"""One replay, joined from replays of its shards."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memconform.datasets.sharding import ShardRecord
from memconform.errors import UsageError
from memconform.records import Incident
from memconform.replay.records import LmeParity, LmeQuestion, LmeResult
from memconform.replay.report_builder import PartOutline, replay_result
from memconform.replay.sdk_agreement import compare_sdks
from memconform.replay.stored_results import read_lme_result
from memconform.scoring.costs import RoleCost
from memconform.storage.provenance import PartOrigin, Start
from memconform.storage.sink import replacing

PARITY = "parity.json"


@dataclass(frozen=True, slots=True)
class ReplayPart:
    """What one SDK did in the replay of a shard, or of several that were joined before."""

    path: Path
    result: LmeResult

    @classmethod
    def read_result(cls, path: Path) -> "ReplayPart":
        """Read a `result-<sdk>.json`; raises UsageError `result_unreadable`."""
        return cls(path, read_lme_result(path))

    @property
    def name(self) -> str:
        return str(self.path)

    @property
    def subject(self) -> str:
        """What is joined with parts of the same subject alone."""
        return f"lme {self.result.sdk} {self.result.settings.benchmark_mode}"

    @property
    def shard(self) -> ShardRecord | None:
        return self.result.settings.shard

    @property
    def identity(self) -> Mapping[str, object]:
        """What parts must have in common."""
        settings = self.result.settings.model_dump(mode="json", exclude={"shard", "questions"})
        own = {"version": self.result.version, "build_hash": self.result.build_hash}
        own["version of memconform"] = self.result.harness_version
        return settings | own | {"mode_rule": self.result.mode_rule}

    @property
    def origins(self) -> list[PartOrigin]:
        """Where it comes from; of what was joined before, where each part of it does."""
        result = self.result
        if result.parts or self.shard is None:
            return result.parts
        run_id = self.path.absolute().parent.name
        return [PartOrigin.of_part(result, run_id, self.shard.numbers, result.started_at)]


def merge_replays(
    parts: Sequence[ReplayPart],
    shard: ShardRecord | None,
    folder: Path,
    *,
    command: Sequence[str],
) -> tuple[LmeResult, Path]:
    """Write the result of all parts of one SDK together, as if one replay had asked all.

    Args:
        parts: with equal settings.
        shard: what the result is a part of; None if it is whole.
        folder: to write to.
        command: the command line, for the result.

    Raises:
        UsageError: if a part has other questions than its settings say (`result_unreadable`).
        ResultsError: if the result cannot be written.
    """
    start = Start()
    first = parts[0].result
    rows = _in_order(parts)
    ids = [row.id for row in rows]
    settings = first.settings.model_copy(update={"shard": shard, "questions": ids})
    outline = PartOutline(
        name=first.sdk,
        is_control=first.mode_rule is None,
        settings=settings,
        build_hash=first.build_hash,
        mode_rule=first.mode_rule,
        command=command,
        merged=tuple(origin for part in parts for origin in part.origins),
    )
    result = replay_result(
        outline, rows, _incidents(parts), start=start, version=first.version, reader=_reader(parts)
    )
    path = folder / f"result-{first.sdk}.json"
    with replacing(path) as target:
        target.write_json(result)
    return result, path


def merge_parity(
    results: Sequence[LmeResult], folders: Sequence[Path], folder: Path, *, command: Sequence[str]
) -> LmeParity | None:
    """Compare the joined results of several SDKs, as the replay of all questions would have.

    Args:
        results: of the same questions; controls are left out.
        folders: of the parts.
        folder: to write to.
        command: the command line.

    Raises:
        ResultsError: if the comparison cannot be written.
    """
    sdks = [result for result in results if result.mode_rule is not None]
    if len(sdks) < 2 or len({tuple(each.settings.questions) for each in sdks}) > 1:
        return None
    rules = [_session_filter(each / PARITY) for each in folders if (each / PARITY).is_file()]
    rule = next(iter(rules), "as in the parts")
    parity = compare_sdks(sdks, command=command, session_filter=rule)
    with replacing(folder / PARITY) as target:
        target.write_json(parity)
    return parity


def _session_filter(path: Path) -> str:
    return LmeParity.model_validate_json(path.read_bytes()).session_filter


def _in_order(parts: Sequence[ReplayPart]) -> list[LmeQuestion]:
    placed: list[tuple[int, LmeQuestion]] = []
    for part in parts:
        places = (part.shard.places if part.shard else None) or []
        if len(places) != len(part.result.questions):
            raise UsageError(
                f"{part.path} contradicts itself",
                code="result_unreadable",
                hint="give a result-<sdk>.json as `lme run` or `lme tri` wrote it",
                excerpt=f"{len(part.result.questions)} questions at {len(places)} places",
            )
        placed += zip(places, part.result.questions, strict=True)
    rows = [row for _, row in sorted(placed, key=lambda each: each[0])]
    ids = [row.id for row in rows]
    if len(set(ids)) < len(ids):
        twice = next(each for each in ids if ids.count(each) > 1)
        raise UsageError(
            f"the parts of {parts[0].result.sdk} contradict each other",
            code="result_unreadable",
            hint="give each result-<sdk>.json as `lme run` or `lme tri` wrote it",
            excerpt=f"question {twice!r} is there twice",
        )
    return rows


def _incidents(parts: Sequence[ReplayPart]) -> list[Incident]:
    return [
        incident.model_copy(update={"message": f"{part.shard.label()}: {incident.message}"})
        for part in parts
        if (incident := part.result.incident) is not None and part.shard is not None
    ]


def _reader(parts: Sequence[ReplayPart]) -> RoleCost:
    none = RoleCost(calls=0, cached=0, input_tokens=0, output_tokens=0, cost_usd=0.0)
    costs = [part.result.cost_accounting.by_role.get("reader", none) for part in parts]
    return RoleCost(
        **{name: sum(getattr(cost, name) for cost in costs) for name in RoleCost.model_fields}
    )
