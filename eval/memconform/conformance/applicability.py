"""Which cases apply to an SDK: those of what it claims."""

import resource
from collections.abc import Collection, Iterator
from enum import StrEnum

from memconform.conformance.case import BaseStep, Expectation, ProcessStep, StoreStep
from memconform.conformance.case_paths import order_changes
from memconform.conformance.catalog import CaseVariant, walk_steps
from memconform.conformance.fixture import CONTROL_ENV
from memconform.contract.dialect import Dialect
from memconform.daemons.sdk_runner import SdkRunner


def skip_reason(entry: CaseVariant, runner: SdkRunner) -> str | None:
    """Return why a case does not apply to this SDK; None if it does."""
    if not hasattr(resource, "prlimit") and any(map(_fills_disk, walk_steps(entry.case))):
        return "this system cannot limit the files of a running process; Linux can"
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
    if runner.dialect is not None:
        reason = dialect_skip_reason(entry, runner.dialect)
        if reason is not None:
            return reason
    return provider_skip_reason(entry, runner)


def _fills_disk(step: BaseStep) -> bool:
    return isinstance(step, ProcessStep) and step.process == "fill_disk"


def dialect_skip_reason(entry: CaseVariant, dialect: Dialect) -> str | None:
    """Return why a case means nothing to a daemon of this dialect; None if it does.

    A single request that the dialect cannot put is found out when it is sent.
    """
    for name, value in _settings(entry):
        if dialect.lacks(name, value):
            return f"the dialect {dialect.name!r} has no variable {name}"
    stores = [step.store for step in walk_steps(entry.case) if isinstance(step, StoreStep)]
    paths = [path for documents in (entry.case.documents, *stores) for path in documents]
    changed = order_changes(paths, dialect.paths)
    if changed is not None:
        one, two = changed
        return f"in the dialect {dialect.name!r} the path of {two!r} sorts before that of {one!r}"
    return None


def _settings(entry: CaseVariant) -> Iterator[tuple[str, str]]:
    """The variables that a case sets, and the timeout that it waits for."""
    yield from entry.case.daemon.env.items()
    expected: list[Expectation] = []
    for step in walk_steps(entry.case):
        if isinstance(step, ProcessStep):
            yield from step.env.items()
        expected += step.expect.values()
    if entry.case.daemon.upstream == "scripted" and any(map(_awaits_timeout, expected)):
        yield from CONTROL_ENV.items()


def _awaits_timeout(expected: Expectation) -> bool:
    """Whether an expectation holds for the problem or the error event of a timeout."""
    if expected.any_of is not None:
        return any(map(_awaits_timeout, expected.any_of))
    if expected.problem is not None:
        return expected.problem.code == "timeout"
    return (expected.at or "").endswith("/code") and expected.is_ == "timeout"


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
