"""Which cases apply to an SDK: those of what it claims."""

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
    return reader_skip_reason(entry, runner)


def reader_skip_reason(entry: CaseVariant, runner: SdkRunner) -> str | None:
    """Return why a case does not apply to the readers of this SDK; None if it does."""
    needed, claimed = entry.needed_readers, runner.readers
    if claimed is not None and needed and needed.isdisjoint(claimed):
        return f"reader {' or '.join(sorted(reader.value for reader in needed))} is not claimed"
    unclaimed = entry.case.unclaimed_reader
    if unclaimed is not None and (claimed is None or unclaimed in claimed):
        return f"reader {unclaimed.value} is claimed"
    return None
