"""Reads the rules of CONTRACT.md, which ships with the package."""

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

_SECTION = re.compile(r"^## (?=([a-z-]+))", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ContractRule:
    """A rule of CONTRACT.md; `text` is on one line."""

    id: str
    level: Literal["must", "should"]
    text: str
    profile: Profile | None
    """The profile after which its section is named; None if it applies to every daemon."""


@cache
def contract_text() -> str:
    """Return CONTRACT.md, from the checkout if there is one, else the packaged copy."""
    checkout = Path(__file__).parents[3] / "sdks" / "CONTRACT.md"
    if checkout.is_file():
        return checkout.read_text(encoding="utf-8")
    return resources.files("memconform").joinpath("contract/CONTRACT.md").read_text("utf-8")


@cache
def rules() -> dict[str, ContractRule]:
    """Return all rules by id, in the order of the document."""
    _, *parts = _SECTION.split(contract_text())
    return {
        match["id"]: ContractRule(
            id=match["id"],
            level="must" if match["level"] == "MUST" else "should",
            text=" ".join(match["text"].split()),
            profile=Profile(section) if section in set(Profile) else None,
        )
        for section, text in zip(parts[::2], parts[1::2], strict=True)
        for match in _RULE.finditer(text)
    }
