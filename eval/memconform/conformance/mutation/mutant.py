"""A correct daemon with one thing broken, and the rule that it violates."""

from dataclasses import dataclass

from memconform.conformance.catalog import CaseVariant
from memconform.conformance.mutation.mutation import Mutation
from memconform.conformance.names import ROBUSTNESS
from memconform.conformance.rules import rules
from memconform.contract.wire import Profile


@dataclass(frozen=True, slots=True)
class Mutant:
    """A mutation of a correct daemon, and what must detect it."""

    id: str
    rule: str
    """The rule that it violates."""
    profile: Profile | None
    """The profile of that rule; None if the rule applies to every daemon."""
    breaks: str
    """What the daemon does wrong, in words."""
    mutation: Mutation
    finder: CaseVariant | None = None
    """The case that must detect it; None: any case may."""
    slot: str = ""
    """Slot of the check of that case."""

    @property
    def level(self) -> str:
        """`must` or `should`: that of the case that must detect it, else that of the rule."""
        return rules()[self.rule].level if self.finder is None else self.finder.case.level

    def concerns(self, entry: CaseVariant) -> bool:
        """Whether a case is likely to detect it: the one that must, or one that cites its rule."""
        if self.finder is not None:
            return entry.id == self.finder.id
        return self.rule in entry.case.rules

    @property
    def check(self) -> str:
        """Id of the check that must detect it; empty if any may."""
        return "" if self.finder is None else f"{self.finder.id}#{self.slot}"

    @property
    def profile_name(self) -> str:
        """The profile as the command line and reports name it."""
        return self.profile.value if self.profile is not None else ROBUSTNESS
