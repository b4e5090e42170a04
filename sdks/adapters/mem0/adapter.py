"""mem0; with the setting `infer`, what a model makes of each text, otherwise the text itself."""

import json
import urllib.request

from mem0 import Memory


def start(folder, settings):
    global _memory, _infer
    _infer = settings.get("infer") == "true"
    body = json.dumps({"model": settings["model"], "input": ["dimensions"]}).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(settings["url"] + "/embeddings", body, headers)
    with urllib.request.urlopen(request) as response:
        dims = len(json.load(response)["data"][0]["embedding"])
    embedder = {"model": settings["model"], "embedding_dims": dims}
    vectors = {"path": str(folder / "qdrant"), "embedding_model_dims": dims, "on_disk": True}
    _memory = Memory.from_config(
        {
            "embedder": {"provider": "openai", "config": embedder},
            "vector_store": {"provider": "qdrant", "config": vectors},
            "history_db_path": str(folder / "history.db"),
        }
    )


def store(user, items):
    for item in items:
        _memory.add(item.text, user_id=user, metadata={"item": item.id}, infer=_infer)


def search(user, query, k):
    found = _memory.search(query, filters={"user_id": user}, top_k=k)
    return [(hit["metadata"]["item"], hit["memory"], hit["score"]) for hit in found["results"]]


def forget(user):
    _memory.delete_all(user_id=user)
