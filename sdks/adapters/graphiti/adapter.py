"""Graphiti, one Kuzu database for each user. A hit is an item that a fact was taken from."""

import asyncio
import hashlib
from datetime import UTC, datetime

from graphiti_core import Graphiti
from graphiti_core.driver.kuzu_driver import KuzuDriver
from graphiti_core.embedder.openai import OpenAIEmbedder, OpenAIEmbedderConfig
from graphiti_core.llm_client import LLMConfig
from graphiti_core.llm_client.openai_generic_client import OpenAIGenericClient
from graphiti_core.nodes import EpisodicNode

_loop = asyncio.new_event_loop()
_graphs = {}


def start(folder, settings):
    global _folder, _settings
    _folder, _settings = folder, settings


def _file(user):
    return _folder / hashlib.sha256(user.encode()).hexdigest()


def _graph(user):
    if user not in _graphs:
        url, file = _settings["url"], _file(user)
        is_new = not file.exists()
        driver = KuzuDriver(str(file))
        if is_new:
            # `Graphiti.build_indices_and_constraints` creates none in Kuzu.
            _loop.run_until_complete(driver.graph_ops.build_indices_and_constraints(driver))
        model = LLMConfig(api_key="scripted", base_url=url, model="extractive")
        embedding = OpenAIEmbedderConfig(
            embedding_model=_settings["model"], api_key="scripted", base_url=url
        )
        _graphs[user] = Graphiti(
            graph_driver=driver,
            llm_client=OpenAIGenericClient(model),
            embedder=OpenAIEmbedder(embedding),
        )
    return _graphs[user]


def store(user, items):
    for item in items:
        date = datetime.fromisoformat(item.date) if item.date else datetime(2024, 1, 1, tzinfo=UTC)
        _loop.run_until_complete(_graph(user).add_episode(item.id, item.text, "chat", date))


def search(user, query, k):
    return _loop.run_until_complete(_search(_graph(user), query, k))


async def _search(graph, query, k):
    edges = await graph.search(query, num_results=k)
    uuids = {uuid for edge in edges for uuid in edge.episodes}
    episodes = await EpisodicNode.get_by_uuids(graph.driver, list(uuids)) if uuids else []
    ids = {episode.uuid: episode.name for episode in episodes}
    return [(ids[uuid], edge.fact, None) for edge in edges for uuid in edge.episodes][:k]


def forget(user):
    _graphs.pop(user, None)
    for file in _folder.glob(_file(user).name + "*"):
        file.unlink()
