"""The rules of CONTRACT.md, which ships with the package."""

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal

from memconform.contract.wire import Profile

_RULE = re.compile(
    r"^- \*\*(?P<id>[a-z0-9.-]+)\*\* \((?P<level>MUST|SHOULD)\) (?P<text>.*?)(?=\n\n|\n- |\n#|\Z)",
    re.MULTILINE | re.DOTALL,
)

_PROFILE_OF_SECTION: dict[str, Profile | None] = {
    "wire": None,
    "core": Profile.CORE,
    "ask": Profile.ASK,
    "documents": Profile.DOCUMENTS,
    "events": Profile.EVENTS,
    "auth": Profile.AUTH,
    "robust": None,
    "state": None,
    "start": None,
    "upstream": None,
}


@dataclass(frozen=True, slots=True)
class ContractRule:
    id: str
    level: Literal["must", "should"]
    text: str

    @property
    def profile(self) -> Profile | None:
        """The profile that it belongs to; None where it is asked of every daemon."""
        return _PROFILE_OF_SECTION[self.id.partition(".")[0]]


@cache
def contract_text() -> str:
    """CONTRACT.md: of the checkout, else the copy in the package."""
    checkout = Path(__file__).parents[3] / "sdks" / "CONTRACT.md"
    if checkout.is_file():
        return checkout.read_text(encoding="utf-8")
    return resources.files("memconform").joinpath("contract/CONTRACT.md").read_text("utf-8")


@cache
def rules() -> dict[str, ContractRule]:
    """All rules by id, in the document's order."""
    return {
        match["id"]: ContractRule(
            id=match["id"],
            level="must" if match["level"] == "MUST" else "should",
            text=" ".join(match["text"].split()),
        )
        for match in _RULE.finditer(contract_text())
    }
