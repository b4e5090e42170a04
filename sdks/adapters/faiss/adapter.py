"""FAISS with a flat index, one for each user; vectors are made by the service of the settings."""

import json
import urllib.request

import faiss
import numpy as np

_users = {}


def start(folder, settings):
    global _url, _model
    _url, _model = settings["url"], settings["model"]


def _vectors(texts):
    body = json.dumps({"model": _model, "input": texts}).encode()
    request = urllib.request.Request(_url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as response:
        rows = json.load(response)["data"]
    vectors = np.array([row["embedding"] for row in rows], dtype="float32")
    faiss.normalize_L2(vectors)
    return vectors


def store(user, items):
    vectors = _vectors([item.text for item in items])
    index, stored = _users.setdefault(user, (faiss.IndexFlatIP(vectors.shape[1]), []))
    index.add(vectors)
    stored.extend(items)


def search(user, query, k):
    index, stored = _users[user]
    scores, rows = index.search(_vectors([query]), min(k, len(stored)))
    return [(stored[row].id, stored[row].text, score) for score, row in zip(scores[0], rows[0])]


def forget(user):
    _users.pop(user, None)
