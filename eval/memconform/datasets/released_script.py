"""Texts of a script that a benchmark's authors released: it is read as a syntax tree, and never
executed."""

import ast
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Final

from memconform.datasets.files import read_whole
from memconform.errors import UsageError

_MAX_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class ReleasedScript:
    """A user's copy of such a script."""

    path: Path
    hint: str
    """What to do if it is another file."""

    def parse(self) -> ast.Module:
        """The syntax tree.

        Raises:
            UsageError: `bad_prompt_script` if it is not Python; `dataset_unreadable`.
        """
        source = read_whole(self.path, _MAX_BYTES)
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
            raise self.unfit(f"is not Python{line}") from error

    def function(self, name: str) -> ast.FunctionDef:
        """A function of the module.

        Raises:
            UsageError: as `parse`, and `bad_prompt_script` if it does not exist.
        """
        for node in self.parse().body:
            if isinstance(node, ast.FunctionDef) and node.name == name:
                return node
        raise self.unfit(f"has no function {name}")

    def unfit(self, fault: str) -> UsageError:
        """The error for a script that lacks what is read from it."""
        return UsageError(f"{self.path} {fault}", code="bad_prompt_script", hint=self.hint)


def template_fields(template: str) -> list[str] | None:
    """The names of a template's fields, in order; None if one has a format or a conversion.

    Those, and names that are not expected, could read any attribute of what is filled in.

    Raises:
        ValueError: if the text is not a template.
    """
    names = []
    for _, name, spec, conversion in Formatter().parse(template):
        if name is not None:
            if spec or conversion is not None:
                return None
            names.append(name)
    return names
