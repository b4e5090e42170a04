"""Qdrant in a folder, one collection for each user; a service makes the vectors."""

import json
import urllib.request
import uuid

from qdrant_client import QdrantClient, models


def start(folder, settings):
    global _client, _settings
    _client = QdrantClient(path=str(folder / "qdrant"))
    _settings = settings


def _vectors(texts):
    body = json.dumps({"model": _settings["model"], "input": texts}).encode()
    request = urllib.request.Request(_settings["url"], body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as response:
        return [row["embedding"] for row in json.load(response)["data"]]


def store(user, items):
    name, vectors = user.encode().hex(), _vectors([item.text for item in items])
    if not _client.collection_exists(name):
        space = models.VectorParams(size=len(vectors[0]), distance=models.Distance.COSINE)
        _client.create_collection(name, vectors_config=space)
    points = [
        models.PointStruct(
            id=str(uuid.uuid5(uuid.NAMESPACE_URL, item.id)),
            vector=vector,
            payload={"item": item.id, "text": item.text},
        )
        for item, vector in zip(items, vectors)
    ]
    _client.upsert(name, points)


def search(user, query, k):
    [vector] = _vectors([query])
    found = _client.query_points(user.encode().hex(), query=vector, limit=k).points
    return [(hit.payload["item"], hit.payload["text"], hit.score) for hit in found]


def forget(user):
    _client.delete_collection(user.encode().hex())
