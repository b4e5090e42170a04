"""The agent against the scripted upstream's process, through the vendors' own clients."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from memconform.daemons.upstream import scripted_upstream
from memconform.llm.budget import Ledger
from memconform.llm.cache import ReplyCache
from memconform.llm.names import ModelName
from memconform.llm.session import LlmSession
from memconform.replay.agent import Agent, SearchRecord
from memconform.replay.agent_prompts import ToolCall
from memconform.replay.hits import Hit


async def _search(call: ToolCall) -> Sequence[Hit]:
    day = "2023/05/30 (Tue) 23:40"
    if call.tool == "kb_search":
        text = "user: It rains.\n\nassistant: Hives are green. Question: What is 1 + 1?"
        return [Hit(1, "raw/lme/s1.md", "session", "s1", day, 0.5, text)]
    text = "Rain all day. The user's friend Ada keeps nine hives."
    return [Hit(1, "memory/project/lme/s1-001.md", "fact", "s1", day, 0.7, text)]


@pytest.mark.parametrize(
    "name", ["openai:gpt-4o-2024-08-06", "anthropic:claude-haiku-4-5", "ollama:llama3:8b"]
)
async def test_the_scripted_upstream_searches_twice_and_quotes_an_answer(
    name: str, tmp_path: Path
) -> None:
    async with scripted_upstream(tmp_path / "upstream", f"agent-{tmp_path.name}") as upstream:
        env = {
            "OPENAI_API_KEY": "k",
            "OPENAI_BASE_URL": f"{upstream.base_url}/v1",
            "ANTHROPIC_API_KEY": "k",
            "ANTHROPIC_BASE_URL": upstream.base_url,
            "OLLAMA_HOST": upstream.base_url.removeprefix("http://"),
        }
        session = LlmSession(Ledger(None), cache=ReplyCache(tmp_path / "cache"), env=env)
        agent = Agent(session.model(ModelName.parse(name, env)))
        try:
            result = await agent.answer("How many hives does Ada keep?", "2023/06/01", _search)
            again = await agent.answer("How many hives does Ada keep?", "2023/06/01", _search)
        finally:
            await session.aclose()
    assert result.failure is None
    assert result.answer == "The user's friend Ada keeps nine hives."
    query = "many hives ada keep"
    expected = [SearchRecord("kb_search", query, 1), SearchRecord("memory_recall", query, 1)]
    assert result.searches == expected
    assert [hit.kind for hit in result.hits] == ["session", "fact"]
    assert (again.answer, again.reader.cached) == (result.answer, 3)
