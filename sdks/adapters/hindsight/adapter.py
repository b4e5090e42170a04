"""Hindsight, one bank for each user."""

import asyncio
import threading
from datetime import datetime

from hindsight_api import MemoryEngine, RequestContext

_loop = asyncio.new_event_loop()


def _run(coroutine):
    return asyncio.run_coroutine_threadsafe(coroutine, _loop).result()


def start(folder, settings):
    global _engine
    threading.Thread(target=_loop.run_forever, daemon=True).start()
    _engine = MemoryEngine()
    _run(_engine.initialize())


def _date(item):
    try:
        return {"event_date": datetime.fromisoformat(item.date)}
    except ValueError:
        return {}


def store(user, items):
    contents = [{"content": item.text, "document_id": item.id, **_date(item)} for item in items]
    _run(_engine.retain_batch_async(user, contents, request_context=RequestContext()))


def search(user, query, k):
    found = _run(_engine.recall_async(user, query, request_context=RequestContext()))
    return [(hit.document_id, hit.text, None) for hit in found.results[:k]]


def forget(user):
    _run(_engine.delete_bank(user, request_context=RequestContext()))
