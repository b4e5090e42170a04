"""The schema of `system.toml`, which describes a memory system behind an adapter."""

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from memconform.daemons.manifest import (
    Argument,
    Kind,
    Name,
    Variable,
)
from memconform.validation_faults import require_placeholders

MANIFEST: Kind = "system.toml"


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class SystemUpstream(_Table):
    """Variables that tell the system where its models are."""

    scripted: dict[Variable, Argument] = Field(default_factory=dict)
    """Variables with `--upstream scripted`; `{upstream}` is the upstream's address without a path,
    `{embed_model}` the model of `--embed-model`."""


class McpTool(_Table):
    """A tool of an MCP server, and what it is called with."""

    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    """Texts may hold placeholders; one that is nothing else becomes the value, such as a number."""


class McpSearch(McpTool):
    """The tool that searches, and where its result has the hits."""

    hits: str | None = None
    """The path of a list, such as `memories` or `result.0.found`, in the structured content or in
    the text as JSON; without it, each text of the content is a hit."""
    text: str = "text"
    """The path in a hit; empty if the hit is the text."""
    id: str | None = None
    score: str | None = None


class McpServer(_Table):
    """An MCP server over stdio. Each user has a process of its own in a folder of its own."""

    command: Annotated[list[Argument], Field(min_length=1)]
    """`{python}` is the interpreter that has the packages of `requires`, `{packages}` the folder of
    those from npm."""
    env: dict[Variable, Argument] = Field(default_factory=dict)
    """Variables; `{folder}` is the user's folder, which is also HOME and the working folder."""
    store: McpTool
    """Called once an item, with {id}, {text}, {speaker}, {session}, {date} and {user}."""
    search: McpSearch
    """Called with {query}, {k} and {user}."""


class SystemManifest(_Table):
    """A system: its adapter, what that needs, and the settings it is measured with."""

    name: Name
    version: str
    """Of the system, as `requires` pins it."""
    licence: str
    adapter: Argument = "adapter.py"
    """A Python module; with `command`, the program's file."""
    command: Annotated[list[Argument], Field(min_length=1)] | None = None
    """How to start an adapter that is not a Python module; `{adapter}` is its absolute path."""
    mcp: McpServer | None = None
    """Instead of an adapter: an MCP server, and which of its tools store and search."""
    python: Annotated[str, Field(pattern=r"^3\.\d{1,2}$")] | None = None
    """The interpreter's version; None for the one that runs memconform."""
    requires: Argument | None = None
    """A file of pinned requirements; for an MCP server from npm, its package-lock.json. None for an
    adapter that needs none."""
    settings: dict[str, str] = Field(default_factory=dict)
    """Handed to the adapter's `start`; placeholders as in `[upstream.scripted]`."""
    timeout_s: float = Field(default=300, gt=0)
    """Seconds for a call of the adapter."""
    root: bool = True
    """Whether it runs as root, which Postgres does not."""
    lacks_model: bool = False
    """Whether it is measured without the language model that it is meant to have, such as with the
    upstream's stand-in: rows say so, and `--system all` leaves it out."""
    upstream: SystemUpstream | None = None


def mcp_faults(mcp: McpServer) -> Iterator[str]:
    """Placeholders that no value has; a text may contain other braces."""
    allowed = {
        "command": ("python", "packages"),
        "env": ("folder",),
        "store": ("id", "text", "speaker", "session", "date", "user"),
        "search": ("query", "k", "user"),
    }
    for key, names in allowed.items():
        value = getattr(mcp, key)
        for text in _texts(value.arguments if isinstance(value, McpTool) else value):
            try:
                require_placeholders(text, names, only_misspelt=True)
            except ValueError as error:
                yield f"mcp.{key}: {error}"
    for tool, needed in ((mcp.store, "{text}"), (mcp.search, "{query}")):
        if not any(needed in text for text in _texts(tool.arguments)):
            yield f"mcp: no argument of {tool.tool} has {needed}"


def _texts(value: object) -> Iterator[str]:
    """All texts in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)
