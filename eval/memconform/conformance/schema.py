"""The JSON Schema of a file of cases. Pure."""

from typing import Any

from memconform.conformance.case import Case

JsonObject = dict[str, Any]

CASES_SCHEMA = "memconform/conformance-cases@1"

_VARIABLE = {"type": "string", "pattern": r"^\$\{[a-z][^}]*\}$"}
"""Wherever a value may stand, a variable of the matrix may."""

_SHORT = {
    "Expectation": [{"type": "integer"}, {"type": "string"}],
    "ProblemSpec": [{"type": "string"}],
}
"""A number for a status, a text for a problem's code."""


def case_schema() -> JsonObject:
    schema = Case.model_json_schema(by_alias=True)
    definitions: JsonObject = schema.pop("$defs")
    for definition in (schema, *definitions.values()):
        _let_be_variables(definition)
    for name, definition in definitions.items():
        if "enum" in definition:
            definitions[name] = {"anyOf": [definition, _VARIABLE]}
    for name, shorter in _SHORT.items():
        definitions[name] = {"anyOf": [definitions[name], *shorter]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": CASES_SCHEMA,
        "title": "A file of conformance cases, as YAML",
        "type": "array",
        "items": schema,
        "$defs": definitions,
    }


def _let_be_variables(definition: JsonObject) -> None:
    for name, value in definition.get("properties", {}).items():
        known = {key: value.pop(key) for key in ("description", "title") if key in value}
        definition["properties"][name] = {**known, "anyOf": [value, _VARIABLE]}
