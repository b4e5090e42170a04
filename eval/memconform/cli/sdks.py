"""The SDKs that a command line names."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from memconform.cli.options import SYSTEM
from memconform.daemons import discovery
from memconform.daemons.availability import SkippedSdk, build_all
from memconform.daemons.discovery import known_sdks, working_folder
from memconform.daemons.sdk_runner import SdkRunner
from memconform.errors import UsageError
from memconform.printing.output import echo

ALL = "all"
UNCLAIMED = ("profile_not_claimed", "mode_not_claimed", "no_upstream")
OF_ONE_SDK = (*UNCLAIMED, "no_real_upstream", "manifest_invalid")
"""Codes that say nothing against the other SDKs of a command."""


def find_runner(reference: str, folder: Path) -> SdkRunner:
    """The runner of an SDK, or of a memory system that `--system` names.

    Raises:
        UsageError: as `discovery.find_runner`, `find_system` and `load_system`.
    """
    if not reference.startswith(SYSTEM):
        return discovery.find_runner(reference, folder)
    from memconform.adapters.program import find_system  # noqa: PLC0415 - for systems alone
    from memconform.adapters.system_runner import SystemRunner  # noqa: PLC0415

    name = reference.removeprefix(SYSTEM)
    if name == ALL:
        raise UsageError(
            "--system all selects several, and here each is named",
            code="bad_option",
            hint="give --system once for each; memconform bench takes all",
        )
    return SystemRunner.of(find_system(name, folder))


class _Named(Protocol):
    @property
    def name(self) -> str: ...


async def build_sdks(
    sdks: Sequence[str], *, no_skip: bool, one_by_one: bool = False, quiet: bool = False
) -> tuple[list[tuple[SdkRunner, str]], list[SkippedSdk]]:
    """Build the SDKs of `--sdk`; returns each with its reference, and those that are skipped.

    Building is shown unless `quiet`. `one_by_one` skips also an SDK that was named, unless none is
    left: what it fails at says nothing against the others.

    Raises:
        MemconformError: if an SDK that was named, or with `no_skip` any, cannot run here.
    """
    folder = working_folder()
    references = every_sdk(list(sdks), folder) if ALL in sdks else list(sdks)
    runners = [find_runner(reference, folder) for reference in references]
    require_distinct_names(runners)
    reference_of = dict(zip((r.name for r in runners), references, strict=True))
    present, skipped = await build_all(
        runners, lambda line: None if quiet else echo(f"  {line}", err=True)
    )
    is_named = ALL not in sdks
    if skipped and ((is_named and not one_by_one) or no_skip or not present):
        raise skipped[0].error
    return (
        [(runner, reference_of[runner.name]) for runner in present],
        [replace(sdk, is_named=is_named) for sdk in skipped],
    )


def require_distinct_names(runners: Sequence[_Named]) -> None:
    """Raise UsageError if two SDKs have the same name."""
    names = [runner.name for runner in runners]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(
                f"{name!r} was given twice",
                code="one_name_twice",
                hint="name each once; `name` in its sdk.toml or system.toml is what counts",
            )


def every_sdk(references: Sequence[str], folder: Path) -> list[str]:
    """Return the names of all known SDKs, for `--sdk all`, and the systems beside it.

    Raises:
        UsageError: if there are none, or `all` is not the only reference.
    """
    systems = [reference for reference in references if reference.startswith(SYSTEM)]
    if len(references) > 1 + len(systems):
        raise UsageError(
            "--sdk all cannot be combined with other SDKs",
            code="all_and_more",
            hint="give --sdk all alone, or name the SDKs",
        )
    names = list(known_sdks(folder))
    if not names:
        raise UsageError(
            "no SDK found: the reference SDKs need a checkout of the project",
            code="unknown_sdk",
            hint="name SDKs in a memconform.toml, or give --sdk a path to sdk.toml",
        )
    return [*names, *systems]
