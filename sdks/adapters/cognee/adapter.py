"""Cognee, one dataset for each user. A hit is a chunk, an item's if that is the whole text."""

import asyncio
import importlib.util
import json
import os
import urllib.request
from pathlib import Path

_loop = asyncio.new_event_loop()


def start(folder, settings):
    global cognee, SearchType
    body = json.dumps({"model": settings["model"], "input": ["dimensions"]}).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(settings["url"] + "/embeddings", body, headers)
    with urllib.request.urlopen(request) as response:
        dims = len(json.load(response)["data"][0]["embedding"])
    # Read when the package is imported.
    os.environ["EMBEDDING_DIMENSIONS"] = str(dims)
    os.environ["DATA_ROOT_DIRECTORY"] = str(folder / "data")
    os.environ["SYSTEM_ROOT_DIRECTORY"] = str(folder / "system")
    # litellm, which Cognee requires, has the tokenizer that Cognee would otherwise download.
    litellm = Path(importlib.util.find_spec("litellm").origin).parent
    os.environ["TIKTOKEN_CACHE_DIR"] = str(litellm / "litellm_core_utils" / "tokenizers")
    import cognee  # noqa: PLC0415 - it reads the variables
    from cognee import SearchType  # noqa: PLC0415


def store(user, items):
    _loop.run_until_complete(cognee.add([item.text for item in items], dataset_name=user))


def finish(user):
    _loop.run_until_complete(cognee.cognify([user]))


def search(user, query, k):
    found = _loop.run_until_complete(
        cognee.search(query, query_type=SearchType.CHUNKS, datasets=[user], top_k=k)
    )
    return [(None, hit["text"], None) for each in found for hit in each["search_result"]]


def forget(user):
    _loop.run_until_complete(_forget(user))


async def _forget(user):
    for dataset in await cognee.datasets.list_datasets():
        if dataset.name == user:
            await cognee.datasets.empty_dataset(dataset.id)
