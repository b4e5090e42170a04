"""Chroma, one collection for each user; vectors are made by the service of the settings."""

import json
import urllib.request

import chromadb


def start(folder, settings):
    global _client, _settings
    _client = chromadb.PersistentClient(path=str(folder / "chroma"))
    _settings = settings


def _vectors(texts):
    body = json.dumps({"model": _settings["model"], "input": texts}).encode()
    request = urllib.request.Request(_settings["url"], body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as response:
        return [row["embedding"] for row in json.load(response)["data"]]


def _collection(user):
    configuration = {"hnsw": {"space": "cosine"}}
    return _client.get_or_create_collection(user.encode().hex(), configuration=configuration)


def store(user, items):
    texts = [item.text for item in items]
    ids = [item.id for item in items]
    _collection(user).add(ids=ids, documents=texts, embeddings=_vectors(texts))


def search(user, query, k):
    found = _collection(user).query(query_embeddings=_vectors([query]), n_results=k)
    hits = zip(found["ids"][0], found["documents"][0], found["distances"][0])
    return [(id, text, 1 - distance) for id, text, distance in hits]


def forget(user):
    _client.delete_collection(user.encode().hex())
