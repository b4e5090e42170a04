"""Which rules of the contract no case holds a daemon to. Pure."""

from collections.abc import Iterable

from memconform.conformance.catalog import CaseVariant
from memconform.conformance.rules import rules


def uncovered(entries: Iterable[CaseVariant]) -> list[str]:
    """Ids of rules that no case cites, in the contract's order."""
    cited = {rule for entry in entries for rule in entry.case.rules}
    return [rule for rule in rules() if rule not in cited]
