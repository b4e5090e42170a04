"""A good daemon with one thing broken, and the rule that it breaks."""

from dataclasses import dataclass

from memconform.conformance.catalog import CaseVariant
from memconform.conformance.names import ROBUSTNESS
from memconform.conformance.rules import rules
from memconform.contract.wire import Profile
from memconform.fakes.mutation import Mutation


@dataclass(frozen=True, slots=True)
class Mutant:
    id: str
    rule: str
    """The one that it breaks."""
    profile: Profile | None
    """Whose part of the contract it is in; None: everyone's."""
    breaks: str
    """What the daemon does, in words."""
    mutation: Mutation
    finder: CaseVariant | None = None
    """The case that must find it; None: any that cites the rule, and else any at all."""
    slot: str = ""
    """Of that case's check."""

    @property
    def level(self) -> str:
        return rules()[self.rule].level if self.finder is None else self.finder.case.level

    def concerns(self, entry: CaseVariant) -> bool:
        """Whether a case is likely to find it: the one that must, or one that is about its rule."""
        if self.finder is not None:
            return entry.id == self.finder.id
        return self.rule in entry.case.rules

    @property
    def check(self) -> str:
        """The id of the check that must find it; empty where any may."""
        return "" if self.finder is None else f"{self.finder.id}#{self.slot}"

    @property
    def profile_name(self) -> str:
        return self.profile.value if self.profile is not None else ROBUSTNESS
