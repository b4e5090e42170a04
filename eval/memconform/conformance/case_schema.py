"""Generates the JSON Schema of a case file. Pure."""

from typing import Any

from memconform.conformance.case import Case

JsonObject = dict[str, Any]

CASES_SCHEMA = "memconform/conformance-cases@1"

_VARIABLE = {"type": "string", "pattern": r"^\$\{[a-z][^}]*\}$"}
"""A variable of the matrix, allowed wherever a value is."""

_SHORT_FORMS = {
    "Expectation": [{"type": "integer"}, {"type": "string"}],
    "ProblemSpec": [{"type": "string"}],
}
"""Short forms: a number for a status, a text for a problem's code."""


def case_schema() -> JsonObject:
    """Build the JSON Schema of a case file, including short forms and variables."""
    schema = Case.model_json_schema(by_alias=True)
    definitions: JsonObject = schema.pop("$defs")
    for definition in (schema, *definitions.values()):
        _allow_variables(definition)
    for name, definition in definitions.items():
        if "enum" in definition:
            definitions[name] = {"anyOf": [definition, _VARIABLE]}
    for name, short_forms in _SHORT_FORMS.items():
        definitions[name] = {"anyOf": [definitions[name], *short_forms]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": CASES_SCHEMA,
        "title": "A file of conformance cases, as YAML",
        "type": "array",
        "items": schema,
        "$defs": definitions,
    }


def _allow_variables(definition: JsonObject) -> None:
    for name, value in definition.get("properties", {}).items():
        annotations = {key: value.pop(key) for key in ("description", "title") if key in value}
        definition["properties"][name] = {**annotations, "anyOf": [value, _VARIABLE]}
