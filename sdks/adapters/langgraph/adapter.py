"""LangGraph's in-memory store, one namespace for each user."""

import json
import urllib.request

from langgraph.store.memory import InMemoryStore


def start(folder, settings):
    global _store

    def embed(texts):
        body = json.dumps({"model": settings["model"], "input": list(texts)}).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(settings["url"], body, headers)
        with urllib.request.urlopen(request) as response:
            return [row["embedding"] for row in json.load(response)["data"]]

    dims = len(embed(["dimensions"])[0])
    _store = InMemoryStore(index={"dims": dims, "embed": embed, "fields": ["text"]})


def store(user, items):
    for item in items:
        _store.put((user.encode().hex(),), item.id, {"text": item.text})


def search(user, query, k):
    found = _store.search((user.encode().hex(),), query=query, limit=k)
    return [(hit.key, hit.value["text"], hit.score) for hit in found]


def forget(user):
    while found := _store.search((user.encode().hex(),), limit=1000):
        for hit in found:
            _store.delete((user.encode().hex(),), hit.key)
