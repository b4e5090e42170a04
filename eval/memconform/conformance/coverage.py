"""Finds rules of the contract that no case covers. Pure."""

from collections.abc import Iterable

from memconform.conformance.catalog import CaseVariant
from memconform.conformance.clients.catalog import ClientVariant
from memconform.conformance.rules import rules


def uncovered_rules(entries: Iterable[CaseVariant | ClientVariant]) -> list[str]:
    """Return the ids of rules that no case cites, in the order of the contract."""
    cited = {rule for entry in entries for rule in entry.case.rules}
    return [rule for rule in rules() if rule not in cited]
