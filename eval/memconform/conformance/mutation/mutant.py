"""A good daemon with one thing broken, and the rule that it breaks."""

from dataclasses import dataclass

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

    @property
    def level(self) -> str:
        return rules()[self.rule].level

    @property
    def profile_name(self) -> str:
        return self.profile.value if self.profile is not None else ROBUSTNESS
