"""LanceDB in a folder, one table for each user; a service makes the vectors."""

import json
import urllib.request

import lancedb


def start(folder, settings):
    global _database, _settings
    _database = lancedb.connect(str(folder / "lancedb"))
    _settings = settings


def _vectors(texts):
    body = json.dumps({"model": _settings["model"], "input": texts}).encode()
    request = urllib.request.Request(_settings["url"], body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as response:
        return [row["embedding"] for row in json.load(response)["data"]]


def store(user, items):
    vectors = _vectors([item.text for item in items])
    rows = [
        {"item": item.id, "text": item.text, "vector": vector}
        for item, vector in zip(items, vectors)
    ]
    name = user.encode().hex()
    if name in _database.table_names(limit=100_000):
        _database.open_table(name).add(rows)
    else:
        _database.create_table(name, rows)


def search(user, query, k):
    [vector] = _vectors([query])
    table = _database.open_table(user.encode().hex())
    found = table.search(vector).distance_type("cosine").limit(k).to_list()
    return [(hit["item"], hit["text"], 1 - hit["_distance"]) for hit in found]


def forget(user):
    _database.drop_table(user.encode().hex())
