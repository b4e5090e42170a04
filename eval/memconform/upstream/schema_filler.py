"""Replies for memory systems that build facts or graphs with a model: no model, fixed rules.

A JSON schema is filled from the prompt, and messages of which memories are wanted are echoed, one
memory each. So a system's storage and search can be measured, and nothing of what a model would
add. What a text says is never obeyed.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memconform.contract.terms import terms
from memconform.contract.wire import JsonValue
from memconform.upstream.extractive import STOP_WORDS

Schema = Mapping[str, Any]

_MOST_NAMES = 4
_MOST_DEPTH = 8
"""Levels of a filled value: a schema may contain itself."""
_MOST_TRIES = 64
"""Positions of a prompt at which a schema is looked for: each costs one parse."""
_RESTRICTIONS = frozenset({"const", "enum", "maxLength", "minimum", "pattern", "format"})
_PASSAGE = re.compile(
    r"<(CURRENT[ _]MESSAGE|NEW[ _]FACT|TEXT|MESSAGES|EPISODES)>\n(.*?)\n</\1>", re.DOTALL
)
"""Where prompts that consist of tagged passages, as those of Graphiti, have the text itself."""
_KNOWN = re.compile(r"<ENTITIES>\n(.*?)\n</ENTITIES>", re.DOTALL)
_SPEAKER = re.compile(r"^(?:\[[^\]\n]*\] *)?([A-Z][\w.'-]*(?: [A-Z][\w.'-]*)?): ", re.MULTILINE)
_CAPITALIZED = re.compile(r"(?<=[a-z,] )[A-Z][\w'-]+(?: [A-Z][\w'-]+)*")
_MEMORIES = re.compile(
    r"\A## Summary\n.*^## Last k Messages\n.*^## Recently Extracted Memories\n"
    r".*^## Existing Memories\n.*?^## New Messages\n(.*)\n\n## Observation Date\n[^\n]*\n\n"
    r"## Current Date\n",
    re.DOTALL | re.MULTILINE,
)
"""The whole of mem0's prompt: a text that is quoted in another one has no such beginning."""
_ROLE = re.compile(r"^(?:user|assistant): ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class WantedSchema:
    """What a chat wants in place of a text."""

    schema: Schema
    tool: str = ""
    """The tool whose arguments it is; empty if it is the text of the reply."""


def stand_in(users: Sequence[str], wanted: WantedSchema | None) -> str | None:
    """The reply to a chat that asks for memories or for a schema; None if it asks for neither.

    Raises:
        ValueError: if the schema is not one.
    """
    if (memories := _MEMORIES.match(users[-1])) is not None:
        return _echo(memories[1])
    if wanted is not None:
        return json.dumps(fill_schema(wanted.schema, users), ensure_ascii=False)
    return None


def _echo(conversation: str) -> str:
    """Each message is a memory, word by word."""
    messages = _ROLE.split(conversation)
    texts = [message.strip() for message in messages if message.strip()]
    memories = [{"id": str(number), "text": text} for number, text in enumerate(texts)]
    return json.dumps({"memory": memories}, ensure_ascii=False)


def find_schema(prompt: str) -> Schema | None:
    """The last JSON schema of an object in a prompt, without its passages; None if none."""
    prompt = _PASSAGE.sub("", prompt)
    decoder, found, position = json.JSONDecoder(), None, 0
    for _ in range(_MOST_TRIES):
        position = prompt.find("{", position)
        if position < 0:
            break
        try:
            value, position = decoder.raw_decode(prompt, position)
        except (ValueError, RecursionError):
            position += 1
            continue
        if isinstance(value, dict) and isinstance(value.get("properties"), dict):
            found = value
    return found


def fill_schema(schema: Schema, users: Sequence[str]) -> JsonValue:
    """A value of the schema whose texts and names are those of the last user message.

    A text is the passage itself. A list of objects with one name has one object for each name: of
    the entities that the prompt lists, otherwise the speaker, capitalized words, and the longest
    word. A list of objects with two names has one object, from the first name to the second. What
    may be omitted or null is; numbers and lists of numbers are 0 and empty.

    Raises:
        ValueError: if the schema is not one.
    """
    passages = [match[2] for match in _PASSAGE.finditer(users[-1])]
    text = (passages[0] if passages else users[-1]).strip()
    names = _listed_names(users[-1]) or list(_names(text))
    try:
        return _Filler(schema, text, names).value(schema, names, 0)
    except (AttributeError, LookupError, TypeError, RecursionError) as error:
        raise ValueError("the reply's schema is not a JSON schema that can be filled") from error


@dataclass(frozen=True, slots=True)
class _Filler:
    root: Schema
    text: str
    names: Sequence[str]

    def value(self, schema: Schema, names: Sequence[str], depth: int, index: int = 0) -> JsonValue:
        """A value; the names that it uses are the first of `names`, its place in a list `index`."""
        schema = self._resolved(schema)
        filled: JsonValue = None
        if "null" in _types(schema):
            return filled
        if depth > _MOST_DEPTH:
            return [] if _types(schema)[0] == "array" else filled
        if "const" in schema or schema.get("enum"):
            return schema["const"] if "const" in schema else schema["enum"][0]
        match _types(schema)[0]:
            case "object":
                filled = self._object(schema, names, depth, index)
            case "array":
                filled = self._array(schema, depth)
            case "integer" | "number":
                # An index whose description names -1 is none.
                none = "-1" in str(schema.get("description", ""))
                filled = -1 if none else schema.get("minimum", 0)
            case "boolean":
                filled = False
            case _:
                limit = schema.get("maxLength")
                filled = self.text[:limit] if isinstance(limit, int) else self.text
        return filled

    def _object(
        self, schema: Schema, names: Sequence[str], depth: int, index: int
    ) -> dict[str, JsonValue]:
        filled: dict[str, JsonValue] = {}
        left = list(names)
        required = schema.get("required", [])
        for key, unresolved in _properties(schema).items():
            if key not in required:
                continue
            part = self._resolved(unresolved)
            if _is_name(key, part) and left:
                filled[key] = left.pop(0) if _is_end(key) else left[0]
            elif key == "id" and _is_free(part, "integer"):
                filled[key] = index
            elif _is_relation(key, part):
                filled[key] = "MENTIONS"
            else:
                filled[key] = self.value(part, names, depth + 1)
        return filled

    def _array(self, schema: Schema, depth: int) -> list[JsonValue]:
        item = self._resolved(schema.get("items") or {})
        if _types(item)[0] == "string":
            return [self.value(item, self.names, depth + 1)]
        if _types(item)[0] != "object":
            return []
        ends = sum(_is_end(key) for key in _properties(item))
        if ends > 1:
            return [self.value(item, self.names, depth + 1)] if len(self.names) > 1 else []
        if not any(_is_name(key, self._resolved(p)) for key, p in _properties(item).items()):
            return [self.value(item, self.names, depth + 1)]
        return [self.value(item, [name], depth + 1, index) for index, name in enumerate(self.names)]

    def _resolved(self, schema: Schema) -> Schema:
        """The schema without references and alternatives; of those, one that may be null is."""
        for _ in range(_MOST_DEPTH):
            if isinstance(reference := schema.get("$ref"), str):
                target: Any = self.root
                for part in filter(None, reference.removeprefix("#").split("/")):
                    target = target.get(part) if isinstance(target, dict) else None
                schema = target if isinstance(target, dict) else {}
            elif parts := schema.get("allOf"):
                schema = _merged([self._resolved(part) for part in parts])
            elif parts := schema.get("anyOf") or schema.get("oneOf"):
                described = {"description": schema.get("description", "")}
                nulls = [part for part in parts if "null" in _types(part)]
                schema = described | dict((nulls or parts)[0])
            else:
                break
        return schema


def _types(schema: Schema) -> Sequence[str]:
    kind = schema.get("type")
    if isinstance(kind, list):
        return kind or ("string",)
    if isinstance(kind, str):
        return (kind,)
    return ("object",) if "properties" in schema else ("string",)


def _merged(parts: Sequence[Schema]) -> Schema:
    """A schema with the properties of all parts."""
    merged = {key: value for part in parts for key, value in part.items()}
    for key in ("properties", "required"):
        present = [part[key] for part in parts if key in part]
        if present and key == "properties":
            merged[key] = {name: each for table in present for name, each in table.items()}
        elif present:
            merged[key] = [name for names in present for name in names]
    return merged


def _properties(schema: Schema) -> dict[str, Schema]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _is_end(key: str) -> bool:
    """Whether a property is one of the two ends of a relation."""
    return key.startswith(("source", "target"))


def _is_free(schema: Schema, kind: str) -> bool:
    """Whether any value of a kind is valid."""
    return kind in _types(schema) and not _RESTRICTIONS & schema.keys()


def _is_name(key: str, schema: Schema) -> bool:
    is_named = key in ("id", "source", "target") or key.endswith(("name", "_id"))
    return is_named and _is_free(schema, "string") and not _is_relation(key, schema)


def _is_relation(key: str, schema: Schema) -> bool:
    return ("relation" in key or key.endswith("type")) and _is_free(schema, "string")


def _listed_names(prompt: str) -> list[str]:
    """The names of the entities that a prompt lists as JSON."""
    found = _KNOWN.search(prompt)
    try:
        listed = json.loads(found[1]) if found else []
    except (ValueError, RecursionError):
        return []
    if not isinstance(listed, list):
        return []
    names = (each.get("name") for each in listed if isinstance(each, dict))
    return [name for name in names if isinstance(name, str) and name]


def _names(text: str) -> Iterator[str]:
    """At most four names of a text, each once: two or more, if it has as many words."""
    found = [match[1] for match in _SPEAKER.finditer(text)]
    found += _CAPITALIZED.findall(text)
    words = sorted(set(terms(text)) - STOP_WORDS, key=lambda word: (-len(word), word))
    named = list(dict.fromkeys(found))[: _MOST_NAMES - 1]
    yield from dict.fromkeys([*named, *words[: max(1, 2 - len(named))]])
