"""The storage of mcp-memory-service, one database for each user."""

import asyncio
import sys

import pysqlite3

sys.modules["sqlite3"] = pysqlite3

from mcp_memory_service.models.memory import Memory
from mcp_memory_service.storage.sqlite_vec import SqliteVecMemoryStorage
from mcp_memory_service.utils.hashing import generate_content_hash

_loop = asyncio.new_event_loop()


def start(folder, settings):
    global _folder, _storages
    _folder, _storages = folder, {}


def _path(user):
    return _folder / f"{user.encode().hex()}.db"


def _storage(user):
    if user not in _storages:
        _storages[user] = SqliteVecMemoryStorage(str(_path(user)))
        _loop.run_until_complete(_storages[user].initialize())
    return _storages[user]


def store(user, items):
    for item in items:
        digest = generate_content_hash(item.text)
        memory = Memory(item.text, digest, metadata={"item": item.id})
        stored, message = _loop.run_until_complete(_storage(user).store(memory))
        if not stored and not message.startswith("Duplicate content detected"):
            raise RuntimeError(message)


def search(user, query, k):
    found = _loop.run_until_complete(_storage(user).retrieve(query, n_results=k))
    if not found:
        # It always finds something, but after an error, which it only logs.
        raise RuntimeError("retrieve returned nothing")
    return [(hit.memory.metadata["item"], hit.memory.content, hit.relevance_score) for hit in found]


def forget(user):
    _loop.run_until_complete(_storages.pop(user).close())
    _path(user).unlink()
