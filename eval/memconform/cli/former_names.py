"""Names that commands had in the last version: they work for one more, and print the new one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FormerName:
    """What a former name stands for."""

    successor: str
    """The new command line, as it is printed."""
    reference: str
    """The command that is called, as `module:attribute` below `memconform.cli`."""
    arguments: tuple[str, ...] = ()
    """What the new command is given before the user's own arguments."""


_FORMATS = ("html", "junit", "ctrf", "csv", "markdown", "annotations", "badge")

FORMER_NAMES: Mapping[str, FormerName] = {
    **{
        f"report {name}": FormerName(
            f"memconform report RESULT… --format {name}",
            "report.command:command",
            ("--format", name),
        )
        for name in _FORMATS
    },
    "report export": FormerName(
        "memconform report RESULT… --format queries|retrieval-log",
        "former_commands:export_command",
    ),
    "rescore": FormerName("memconform score RESULT", "score.command:command"),
    "answer": FormerName("memconform score RESULT… --reader MODEL", "score.command:command"),
    "judge longmemeval": FormerName(
        "memconform score FILE --rubric longmemeval", "former_commands:longmemeval_command"
    ),
    "judge locomo": FormerName(
        "memconform score FILE --rubric locomo", "former_commands:locomo_command"
    ),
    "wmb score": FormerName(
        "memconform score FILE --rubric wmb", "former_commands:wmb_score_command"
    ),
    "trend": FormerName("memconform diff [FOLDER]", "former_commands:trend_command"),
    "lme review": FormerName("memconform diff BEFORE AFTER", "former_commands:review_command"),
}
"""By the words of the former name."""


def find_former_name(words: Sequence[str]) -> str | None:
    """The former name that a command line begins with, if there is one."""
    return next((name for name in (" ".join(words[:2]), *words[:1]) if name in FORMER_NAMES), None)
