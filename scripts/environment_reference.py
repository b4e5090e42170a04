"""Generates docs/ENVIRONMENT.md: what each variable of a shell does, as the tests try it."""

import sys
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(_ROOT / "eval"))

from tests.environment_rows import Group, environment_page  # noqa: E402 - found by the path above

PAGE = _ROOT / "docs" / "ENVIRONMENT.md"


def rendered() -> str:
    """Render the page."""
    page = environment_page()
    sections = ["\n".join(_section(group)) for group in page.group]
    return "\n".join([page.head, *sections, page.tail])


def _section(group: Group) -> Iterator[str]:
    yield f"## {group.title}\n"
    if group.intro:
        yield f"{group.intro}\n"
    yield "| variable | read by | what it does | a value that cannot be used |"
    yield "| --- | --- | --- | --- |"
    for variable in group.variable:
        names = ", ".join(f"`{name}`" for name in variable.names)
        yield f"| {names} | {variable.read_by} | {variable.does} | {variable.bad} |"
    yield ""


if __name__ == "__main__":
    PAGE.write_text(rendered(), encoding="utf-8")
