"""The cases of a command line, of daemons or of clients: which are run, listed and found."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Generic, Protocol, TypeVar

from memconform.cli.output_files import json_target
from memconform.conformance.known_failures import KnownFailure
from memconform.conformance.merged_report import DigestedVariant, case_digest
from memconform.conformance.results import ShardedCases
from memconform.datasets.sharding import Shard, ShardRecord
from memconform.errors import ExitCode, NothingSelectedError, UsageError, nearest
from memconform.printing.output import echo
from memconform.printing.plurals import plural
from memconform.storage.provenance import HostOrigin


class Variant(DigestedVariant, Protocol):
    """A case with one combination of the values of its matrix."""

    @property
    def base(self) -> str:
        """Id of the case, without the labels."""
        ...


V = TypeVar("V", bound=Variant)


@dataclass(frozen=True, slots=True)
class ChosenCases(Generic[V]):
    """The cases of a command line."""

    catalog: Sequence[V]
    """All that there are."""
    selected: Sequence[V]
    own: Sequence[V]
    """Those that are run: in a shard some of the selected ones."""
    shard: ShardRecord | None
    complete: bool
    """Whether all cases are selected and run to the end."""
    selection: str
    """What is selected, in words; empty for all shipped cases."""

    @property
    def label(self) -> str:
        """What is run, in words; empty for all shipped cases."""
        shard = "" if self.shard is None else self.shard.label()
        return ", ".join(filter(None, (self.selection, shard)))

    def sharded(
        self, known: Iterable[KnownFailure], builds: Mapping[str, str | None]
    ) -> ShardedCases | None:
        """What the report of a shard says, so that it can be joined; None without shards.

        `builds` has the digest of each SDK's build.
        """
        if self.shard is None:
            return None
        return ShardedCases(
            shard=self.shard,
            cases=[entry.id for entry in self.own],
            all_sha256=case_digest(self.selected),
            builds=dict(builds),
            origin=HostOrigin.of(sys.argv),
            selection=self.selection,
            complete=self.complete,
            known=[entry.model_dump(mode="json") for entry in known],
        )


def matching_cases(cases: Sequence[V], globs: tuple[str, ...], listing: str) -> list[V]:
    """Select the cases whose ids match; without globs, all of them.

    Raises:
        NothingSelectedError: if a glob matches no case, or there is none; `listing` shows them.
    """
    for glob in globs:
        if not any(matches(entry, glob) for entry in cases):
            raise NothingSelectedError(
                f"--case {glob}: no case matches",
                code="no_such_case",
                hint=nearest(glob, [e.base for e in cases]) or f"see {listing}",
            )
    selected = [e for e in cases if not globs or any(matches(e, glob) for glob in globs)]
    if not selected:
        raise NothingSelectedError(
            "no case is selected", code="nothing_selected", hint=f"see {listing}"
        )
    return selected


def matches(entry: Variant, glob: str) -> bool:
    """Whether a variant, its case, or the case of one of its checks has this name."""
    pattern = glob.partition("#")[0].replace("[", "[[]")
    return fnmatchcase(entry.id, pattern) or fnmatchcase(entry.base, pattern)


def sharded_cases(entries: list[V], shard: str | None) -> tuple[list[V], ShardRecord | None]:
    """The variants of --shard, and what the report says of it; variants of a case stay together.

    Raises:
        UsageError: if there are more shards than cases (`too_many_shards`).
    """
    if shard is None:
        return entries, None
    part = Shard.parse(shard)
    places = part.places([entry.base for entry in entries], "case")
    return [entries[place] for place in places], part.record("case", places)


def find_case(name: str, cases: Sequence[V], listing: str) -> V:
    """Find a case by its id, by the id of a variant, or by the id of a check.

    Raises:
        UsageError: `no_such_case`; `listing` shows the cases.
    """
    case_id = name.partition("#")[0]
    found = next((entry for entry in cases if entry.id == case_id), None)
    found = found or next((entry for entry in cases if entry.base == case_id), None)
    if found is None:
        raise UsageError(
            f"case {case_id!r} does not exist",
            code="no_such_case",
            hint=nearest(case_id, {e.base for e in cases}) or listing,
        )
    return found


def show_cases(
    cases: Sequence[tuple[Variant, Mapping[str, object]]], json_file: str | None
) -> ExitCode:
    """Print variants, or write them as JSON.

    Args:
        cases: each variant, with its `level`, its `rules` and what else JSON says of it.
        json_file: the target; None prints a line a variant.
    """
    if json_file is not None:
        with json_target(json_file) as target:
            target.write_json({"cases": [{"id": entry.id, **facts} for entry, facts in cases]})
        return ExitCode.OK
    checks = 0
    for entry, facts in cases:
        rules, own = facts["rules"], facts["checks"]
        if isinstance(rules, list) and isinstance(own, list):
            echo(f"{entry.id:<58} {facts['level']:<7} {', '.join(rules)}")
            checks += len(own)
    count = plural(len({entry.base for entry, _ in cases}), "case")
    variants = f"{count} in {plural(len(cases), 'variant', spec=',')}"
    echo(f"{variants}, {plural(checks, 'check', spec=',')}", err=True)
    return ExitCode.OK
