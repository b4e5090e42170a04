"""Reads YAML strictly: no duplicate keys, no dates, no `yes`; errors name file and line.

Nesting and aliases are measured before a value is built: PyYAML's C composer recurses and crashes
with a segmentation fault at 30,000 levels, and nine lines of aliases make a billion values.
"""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from memconform.contract.wire import JsonValue
from memconform.datasets.files import read_text
from memconform.errors import UsageError

_MAX_BYTES = 1 << 20
"""Largest file; the largest that ships, made of the test vectors, has 0.25 MB."""
_MAX_DEPTH = 64
"""Deepest nesting. The deepest file that ships has 12 levels; a daemon's metadata may have 64."""
_MAX_NODES = 200_000
"""Most nodes of a file as written, ten times the largest that ships; a node takes 0.5 kB."""
_MAX_EXPANDED = 2 << 20
"""Most nodes and characters with aliases expanded, several times the largest that ships."""
_MAX_NUMBER = 400
"""Longest number, in characters: parsing base 60 (`1:59:59`) takes quadratic time."""
_NUMBER = re.compile(r"[-+0-9a-fxo._:]+", re.IGNORECASE)

_SURPRISES = ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:bool")
# The C parser is about ten times as fast; PyYAML may be built without it.
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Strict(_Base):  # type: ignore[misc] # one of two classes, chosen above
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - PyYAML's signature
        seen = set()
        for key_node, _ in node.value:
            key = key_node.value
            if not isinstance(key, str) or key_node.tag == "tag:yaml.org,2002:merge":
                raise _fault("a key must be a plain text", key_node)
            if key in seen:
                raise _fault(f"the key {key!r} occurs twice", key_node)
            seen.add(key)
        loaded: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        return loaded


_Strict.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _SURPRISES]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Strict.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(?:true|false)$"), list("tf"))


def _fault(message: str, at: Any) -> yaml.MarkedYAMLError:  # noqa: ANN401 - a node or an event
    return yaml.MarkedYAMLError(problem=message, problem_mark=at.start_mark)


@dataclass(slots=True)
class _Collection:
    """An open list or mapping."""

    anchor: str | None
    before: int
    """The expanded size of the document before it began."""
    levels: int = 1
    """Its depth so far, including itself."""


@dataclass(slots=True)
class _Budget:
    """Measures the size of a document, event by event."""

    nodes: int = 0
    expanded: int = 0
    anchors: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Expanded size and depth of each anchored node."""
    _open: list[_Collection] = field(default_factory=list)

    def spend(self, event: Any) -> None:  # noqa: ANN401 - the stubs do not know what parse() yields
        """Count an event.

        Raises:
            yaml.MarkedYAMLError: if the document becomes too large.
        """
        match event:
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._open.append(_Collection(event.anchor, self.expanded))
                self._add(1, 0, event)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                closed = self._open.pop()
                if closed.anchor is not None:
                    self.anchors[closed.anchor] = (self.expanded - closed.before, closed.levels)
                if self._open:
                    self._open[-1].levels = max(self._open[-1].levels, closed.levels + 1)
            case yaml.ScalarEvent():
                size = 1 + len(event.value)
                is_plain = not event.style or event.tag is not None
                if size > _MAX_NUMBER and is_plain and _NUMBER.fullmatch(event.value):
                    raise _fault(f"a number has more than {_MAX_NUMBER} characters", event)
                self._add(size, 0, event)
                if event.anchor is not None:
                    self.anchors[event.anchor] = (size, 0)
            case yaml.AliasEvent():
                # An alias inside its own anchor counts as one node; the value is rejected later.
                size, levels = self.anchors.get(str(event.anchor), (1, 0))
                self._add(size, levels, event)
                if self._open:
                    self._open[-1].levels = max(self._open[-1].levels, levels + 1)

    def _add(self, size: int, levels: int, event: Any) -> None:  # noqa: ANN401 - see above
        self.nodes += 1
        self.expanded += size
        if len(self._open) + levels > _MAX_DEPTH:
            raise _fault(f"nests more than {_MAX_DEPTH} levels deep", event)
        if self.nodes > _MAX_NODES:
            raise _fault(f"has more than {_MAX_NODES:,} values", event)
        if self.expanded > _MAX_EXPANDED:
            raise _fault(f"is larger than {_MAX_EXPANDED:,} characters with its aliases", event)


def _require_within_limits(text: str) -> None:
    """Raise MarkedYAMLError if loading would take too much stack, memory or time."""
    budget = _Budget()
    # The parser, unlike the composer, does not recurse.
    for event in yaml.parse(text, Loader=_Strict):
        budget.spend(event)


def item_lines(path: Path) -> list[int]:
    """Return the line, from 1, at which each item of a file's list begins.

    The file must be one that `load_yaml` accepts: composing a document recurses.

    Raises:
        UsageError: `yaml_unreadable`.
    """
    root: Any = yaml.compose(_read_text(path), Loader=_Strict)
    return [item.start_mark.line + 1 for item in root.value]


def _read_text(path: Path) -> str:
    try:
        return read_text(path, _MAX_BYTES)
    except UsageError as error:
        raise UsageError(error.message, code="yaml_unreadable", hint=error.hint) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: {error}", code="yaml_unreadable") from error


def load_yaml(path: Path) -> JsonValue:
    """Load the only document of a file.

    Raises:
        UsageError: `yaml_unreadable`, or `yaml_invalid` naming the line.
    """
    text = _read_text(path)
    try:
        _require_within_limits(text)
        # A subclass of PyYAML's safe loader, which builds plain values only.
        loaded = yaml.load(text, Loader=_Strict)  # noqa: S506
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UsageError(f"{path}{line}: {error.problem}", code="yaml_invalid") from error
    except (yaml.YAMLError, ValueError) as error:
        raise UsageError(f"{path}: {error}", code="yaml_invalid") from error
    try:
        json.dumps(loaded)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: a value contains itself", code="yaml_invalid") from error
    except TypeError as error:
        why = "has a value that JSON cannot represent: a set, a date or bytes"
        raise UsageError(f"{path}: {why}", code="yaml_invalid") from error
    return loaded
