"""Replies in place of a language model: filled schemas and echoed messages."""

import json
from typing import Any

import httpx
import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memconform.contract.wire import JsonValue
from memconform.upstream.schema_filler import find_schema
from memconform.upstream.script import Reply, Script, ScriptRule
from memconform.upstream.server import ScriptedUpstream

_MEM0 = (
    "## Summary\n\n\n## Last k Messages\n\n\n## Recently Extracted Memories\n[]\n\n"
    "## Existing Memories\n[]\n\n## New Messages\n{messages}\n\n"
    "## Observation Date\n2026-01-01\n\n## Current Date\n2026-01-01\n\n# Output:"
)
_EDGES = {
    "$defs": {
        "Edge": {
            "type": "object",
            "properties": {
                "source_entity_name": {"type": "string"},
                "target_entity_name": {"type": "string"},
                "relation_type": {"type": "string"},
                "fact": {"type": "string"},
                "valid_at": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
            },
            "required": ["source_entity_name", "target_entity_name", "relation_type", "fact"],
        }
    },
    "type": "object",
    "properties": {"edges": {"type": "array", "items": {"$ref": "#/$defs/Edge"}}},
    "required": ["edges"],
}
_NAMES = {
    "type": "object",
    "properties": {
        "entities": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "id": {"type": "integer"},
                    "name": {"type": "string"},
                    "duplicate_of": {"type": "integer", "description": "-1 if there is none"},
                },
                "required": ["id", "name", "duplicate_of"],
            },
        }
    },
    "required": ["entities"],
}
_TURN = "[1 May] Oda: Nils paints the hull of the Marigold."


async def _post(
    body: dict[str, JsonValue], path: str = "chat/completions", *rules: ScriptRule
) -> tuple[httpx.Response, dict[str, Any]]:
    """The answer of an upstream, and its counts."""
    app = ScriptedUpstream(Script(rules=list(rules))).app()
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://upstream") as http:
        answer = await http.post(f"/v1/{path}", json=body)
        return answer, (await http.get("/_control/counts")).json()


async def _filled(schema: dict[str, Any], prompt: str) -> Any:
    wanted = {"type": "json_schema", "json_schema": {"name": "r", "schema": schema}}
    messages: JsonValue = [{"role": "user", "content": prompt}]
    answer, counts = await _post({"messages": messages, "response_format": wanted})
    assert answer.status_code == 200, answer.text
    assert (counts["stand_ins"], counts["answers"], counts["refused"]) == (1, 0, 0)
    return json.loads(answer.json()["choices"][0]["message"]["content"])


async def test_a_fact_is_the_text_between_its_first_two_names() -> None:
    assert await _filled(_EDGES, f"<CURRENT_MESSAGE>\n{_TURN}\n</CURRENT_MESSAGE>\nDo it.") == {
        "edges": [
            {
                "source_entity_name": "Oda",
                "target_entity_name": "Marigold",
                "relation_type": "MENTIONS",
                "fact": _TURN,
            }
        ]
    }


async def test_listed_entities_are_the_names_each_with_its_place() -> None:
    prompt = '<ENTITIES>\n[{"name": "Ulf"}, {"name": "Ida"}]\n</ENTITIES>'
    assert await _filled(_NAMES, prompt) == {
        "entities": [
            {"id": 0, "name": "Ulf", "duplicate_of": -1},
            {"id": 1, "name": "Ida", "duplicate_of": -1},
        ]
    }


async def test_plain_ends_are_names_and_all_parts_are_filled() -> None:
    """`source` and `target` got the passage, and of `allOf` only the first part was filled."""
    edge = {
        "allOf": [
            {"properties": {"source": {"type": "string"}}, "required": ["source"]},
            {"properties": {"target": {"type": "string"}}, "required": ["target"]},
        ]
    }
    assert await _filled(edge, _TURN) == {"source": "Oda", "target": "Marigold"}


async def test_a_list_within_itself_ends_empty() -> None:
    """It ended in null, which a strict client refused."""
    schema = {
        "type": "object",
        "properties": {"kids": {"type": "array", "items": {"$ref": "#"}}},
        "required": ["kids"],
    }
    filled = await _filled(schema, _TURN)
    jsonschema.validate(filled, schema)
    while filled["kids"]:
        [filled] = filled["kids"]
    assert filled["kids"] == []


async def test_a_text_without_two_names_has_no_fact() -> None:
    assert await _filled(_EDGES, "...") == {"edges": []}


@pytest.mark.parametrize(
    ("messages", "memories"),
    [
        ("user: [1 May] Oda: paint\nassistant: Good.\n", ["[1 May] Oda: paint", "Good."]),
        ("user: one\nand its second line", ["one\nand its second line"]),
        ("", []),
    ],
)
async def test_each_new_message_is_a_memory(messages: str, memories: list[str]) -> None:
    answer, counts = await _post(
        {
            "messages": [{"role": "user", "content": _MEM0.format(messages=messages)}],
            "response_format": {"type": "json_object"},
        }
    )
    reply = json.loads(answer.json()["choices"][0]["message"]["content"])
    assert [memory["text"] for memory in reply["memory"]] == memories
    assert counts["stand_ins"] == 1


async def test_a_schema_in_the_prompt_is_filled() -> None:
    prompt = f'Fill {{"this": }} {json.dumps(_EDGES)} from\n<TEXT>\n{_TURN}\n</TEXT>'
    answer, _ = await _post(
        {
            "messages": [{"role": "system", "content": "x"}, {"role": "user", "content": prompt}],
            "response_format": {"type": "json_object"},
        }
    )
    reply = json.loads(answer.json()["choices"][0]["message"]["content"])
    assert [edge["fact"] for edge in reply["edges"]] == [_TURN]


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "f"}}])
async def test_a_tool_that_must_be_called_is_called(choice: JsonValue) -> None:
    body: dict[str, JsonValue] = {
        "messages": [{"role": "user", "content": _TURN}],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": _EDGES}}],
        "tool_choice": choice,
    }
    answer, _ = await _post(body)
    [choices] = answer.json()["choices"]
    [call] = choices["message"]["tool_calls"]
    assert (choices["finish_reason"], call["function"]["name"]) == ("tool_calls", "f")
    jsonschema.validate(json.loads(call["function"]["arguments"]), _EDGES)
    streamed, _ = await _post(body | {"stream": True})
    assert (streamed.status_code, "not streamed" in streamed.text) == (400, True)
    scripted, _ = await _post(body, "chat/completions", ScriptRule(reply=Reply(text="no")))
    assert scripted.json()["choices"][0]["message"]["content"] == "no"


async def test_anthropics_tool_is_called() -> None:
    body: dict[str, JsonValue] = {
        "max_tokens": 100,
        "messages": [{"role": "user", "content": _TURN}],
        "tools": [{"name": "f", "input_schema": _EDGES}],
        "tool_choice": {"type": "tool", "name": "f"},
    }
    answer, _ = await _post(body, "messages")
    [block] = answer.json()["content"]
    assert (block["type"], block["name"], answer.json()["stop_reason"]) == (
        *("tool_use", "f"),
        "tool_use",
    )
    jsonschema.validate(block["input"], _EDGES)


@pytest.mark.parametrize(
    "more",
    [
        {"tools": [], "tool_choice": "required"},
        {
            "tools": [{"function": {"name": "g"}}],
            "tool_choice": {"type": "function", "function": {"name": "f"}},
        },
        {"tools": [{"function": "f"}], "tool_choice": "required"},
        {"tools": [], "tool_choice": {"type": "function", "function": "f"}},
        {"response_format": {"type": "json_schema", "json_schema": "s"}},
        {"response_format": "json_object"},
        *(
            {"response_format": {"type": "json_schema", "json_schema": {"schema": schema}}}
            for schema in (
                {"type": "object", "properties": {"a": 5}, "required": ["a"]},
                {"type": "object", "properties": {"a": {}}, "required": 5},
                {"anyOf": ["x"]},
                {"enum": 5},
                {"type": "array", "items": [{}]},
            )
        ),
        {"tools": [{"function": {"name": "f"}}], "tool_choice": "required"},
        {"response_format": {"type": "json_schema"}},
        {"response_format": {"type": "json_schema", "json_schema": {"schema": [1]}}},
    ],
)
async def test_a_schema_that_is_missing_is_an_error(more: dict[str, JsonValue]) -> None:
    answer, counts = await _post({"messages": [{"role": "user", "content": "x"}], **more})
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert counts["stand_ins"] == 0


async def test_without_a_schema_the_reader_answers_as_before() -> None:
    answer, counts = await _post(
        {
            "messages": [{"role": "user", "content": "no schema: {}"}],
            "response_format": {"type": "json_object"},
        }
    )
    assert (answer.status_code, counts["stand_ins"], counts["refused"]) == (400, 0, 1)


@pytest.mark.parametrize(
    "prompt",
    [
        "Notes:\n[1] ## New Messages\nuser: a box\n\n## Observation Date\n\nQuestion: Which box?",
        f"Notes:\n[1] {_MEM0.format(messages='user: a box')}\n\nQuestion: Which box?",
    ],
)
async def test_a_text_that_quotes_a_prompt_is_not_obeyed(prompt: str) -> None:
    answer, counts = await _post({"messages": [{"role": "user", "content": prompt}]})
    assert (counts["stand_ins"], counts["answers"]) == (0, 1)
    assert "memory" not in answer.text


async def test_a_schema_in_a_passage_is_text() -> None:
    other = json.dumps({"properties": {"x": {"type": "string"}}, "required": ["x"]})
    prompt = f"{json.dumps(_EDGES)}\n<TEXT>\n{other}\n</TEXT>"
    message: JsonValue = {"role": "user", "content": prompt}
    answer, _ = await _post({"messages": [message], "response_format": {"type": "json_object"}})
    reply = json.loads(answer.json()["choices"][0]["message"]["content"])
    assert set(reply) == {"edges"}


async def test_a_tool_that_may_be_called_is_none_that_must() -> None:
    choice: JsonValue = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}
    prompt = "Notes:\nThe kiln is hot.\n\nQuestion: Is the kiln hot?"
    answer, counts = await _post(
        {"messages": [{"role": "user", "content": prompt}], "tools": [], "tool_choice": choice}
    )
    assert answer.json()["choices"][0]["message"]["content"] == "The kiln is hot."
    assert counts["answers"] == 1


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    keys = st.sampled_from(["name", "id", "source_name", "target_name", "relation", "text", "n"])
    objects = st.dictionaries(keys, inner, max_size=4).flatmap(
        lambda properties: st.fixed_dictionaries(
            {
                "type": st.just("object"),
                "properties": st.just(properties),
                "required": st.lists(st.sampled_from(sorted(properties) or ["x"]), unique=True)
                if properties
                else st.just([]),
            }
        )
    )
    arrays = inner.map(lambda item: {"type": "array", "items": item})
    either = st.lists(inner, min_size=1, max_size=2).map(lambda parts: {"anyOf": parts})
    return objects | arrays | either


_LEAVES = st.sampled_from(
    [
        *({"type": kind} for kind in ("string", "integer", "number", "boolean", "null")),
        {"type": "string", "enum": ["a", "b"]},
        {"const": 3},
        {"type": ["string", "null"]},
        {"type": "string", "maxLength": 3},
        {"type": "integer", "minimum": 4},
    ]
)


@settings(max_examples=60)
@given(st.recursive(_LEAVES, _nested, max_leaves=8), st.text(max_size=60))
async def test_a_filled_schema_is_valid(schema: Any, text: str) -> None:
    prompt = f"Oda: {text} Nils"
    wrapped = {"type": "object", "properties": {"value": schema}, "required": ["value"]}
    jsonschema.validate(await _filled(wrapped, prompt), wrapped)


async def test_a_schema_within_itself_ends() -> None:
    schema = {
        "type": "object",
        "properties": {"child": {"$ref": "#"}, "text": {"type": "string"}},
        "required": ["child", "text"],
    }
    filled = await _filled(schema, _TURN)
    assert filled["child"]["child"]["text"] == _TURN


@pytest.mark.parametrize("prompt", ["{" * 100_000, '{"a":' * 50_000, "", "{}", '{"properties": 1}'])
def test_a_prompt_without_a_schema_has_none(prompt: str) -> None:
    assert find_schema(prompt) is None
