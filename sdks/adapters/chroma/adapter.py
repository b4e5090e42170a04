"""Chroma, one collection for each user; vectors are made by the service of the settings."""

import json
import urllib.request

import chromadb

_collections = {}


def start(folder, settings):
    global _client, _settings
    _client = chromadb.PersistentClient(path=str(folder / "chroma"))
    _settings = settings


def _vectors(texts):
    body = json.dumps({"model": _settings["model"], "input": texts}).encode()
    request = urllib.request.Request(_settings["url"], body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as response:
        return [row["embedding"] for row in json.load(response)["data"]]


def store(user, items):
    if user not in _collections:
        configuration = {"hnsw": {"space": "cosine"}}
        name = f"user-{len(_collections)}"
        _collections[user] = _client.create_collection(name, configuration=configuration)
    texts = [item.text for item in items]
    ids = [item.id for item in items]
    _collections[user].add(ids=ids, documents=texts, embeddings=_vectors(texts))


def search(user, query, k):
    found = _collections[user].query(query_embeddings=_vectors([query]), n_results=k)
    hits = zip(found["ids"][0], found["documents"][0], found["distances"][0])
    return [(id, text, 1 - distance) for id, text, distance in hits]
