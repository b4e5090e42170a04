"""MemPalace, one wing for each user."""

from mempalace.config import MempalaceConfig
from mempalace.mcp_server import tool_add_drawer
from mempalace.palace import get_collection
from mempalace.searcher import search_memories


def start(folder, settings):
    global _palace
    _palace = MempalaceConfig().palace_path  # in the home, which is `folder`


def _wing(user):
    return user.encode().hex()


def store(user, items):
    for item in items:
        stored = tool_add_drawer(_wing(user), "memories", item.text, source_file=item.id)
        if not stored["success"]:
            raise RuntimeError(stored["error"])


def search(user, query, k):
    found = search_memories(query, _palace, wing=_wing(user), n_results=k)
    if "error" in found:
        raise RuntimeError(found["error"])
    return [(hit["source_path"], hit["text"], hit["similarity"]) for hit in found["results"]]


def forget(user):
    get_collection(_palace).delete(where={"wing": _wing(user)})
