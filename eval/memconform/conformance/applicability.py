"""Which cases apply to an SDK: those of what it claims."""

from collections.abc import Collection
from enum import StrEnum

from memconform.conformance.catalog import CaseVariant
from memconform.daemons.runner import SdkRunner


def skip_reason(entry: CaseVariant, runner: SdkRunner) -> str | None:
    """Return why a case does not apply to this SDK; None if it does."""
    claimed = set(runner.profiles)
    for profile in entry.needed_profiles:
        if profile not in claimed:
            return f"profile {profile.value} is not claimed"
    modes = runner.modes
    scripted = entry.case.daemon.upstream == "scripted"
    if modes is not None and scripted:
        modes = (*modes, *runner.scripted_modes)
    for mode in entry.case.modes:
        if modes is not None and mode not in modes:
            return f"mode {mode.value} is not claimed"
    return provider_skip_reason(entry, runner)


def provider_skip_reason(entry: CaseVariant, runner: SdkRunner) -> str | None:
    """Return why a case does not apply to this SDK's readers and embedders; None if it does."""
    return reader_skip_reason(entry, runner) or embedder_skip_reason(entry, runner)


def reader_skip_reason(entry: CaseVariant, runner: SdkRunner) -> str | None:
    """Return why a case does not apply to the readers of this SDK; None if it does."""
    return _skip_reason("reader", entry.needed_readers, runner.readers, entry.case.unclaimed_reader)


def embedder_skip_reason(entry: CaseVariant, runner: SdkRunner) -> str | None:
    """Return why a case does not apply to the embedders of this SDK; None if it does."""
    return _skip_reason(
        "embedder", entry.needed_embedders, runner.embedders, entry.case.unclaimed_embedder
    )


def _skip_reason(
    kind: str,
    needed: Collection[StrEnum],
    claimed: Collection[StrEnum] | None,
    unclaimed: StrEnum | None,
) -> str | None:
    if claimed is not None and needed and not set(needed).intersection(claimed):
        return f"{kind} {' or '.join(sorted(provider.value for provider in needed))} is not claimed"
    if unclaimed is not None and (claimed is None or unclaimed in claimed):
        return f"{kind} {unclaimed.value} is claimed"
    return None
