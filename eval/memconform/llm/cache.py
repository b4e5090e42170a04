"""Replies on disk, by everything that they depend on: what was paid for is not paid for again."""

import hashlib
import json
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from memconform.errors import MemconformError, ResultsError, UsageError
from memconform.llm.chat import ChatRequest
from memconform.llm.names import ModelName
from memconform.llm.prices import ModelTraits
from memconform.printing.logs import Logger
from memconform.redaction import hides, redact, redact_values
from memconform.storage.sink import Masked, replacing
from memconform.user_cache import cache_folder

_log = Logger()

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class CachedReply:
    text: str
    served_model: str


@dataclass(frozen=True, slots=True)
class CacheStats:
    folder: Path
    entries: int
    bytes: int
    oldest: float | None
    """Seconds since 1970; None for an empty cache."""


def cache_key(
    name: ModelName,
    base_url: str | None,
    traits: ModelTraits,
    request: ChatRequest,
    repetition: int = 0,
) -> str:
    """The SHA-256 of provider, address, model, messages, every parameter and the prompt's version.

    The number of a repetition is part of it: each is a sample of its own.

    The address is part of it: two servers may give one name to two models. It enters as a digest.
    """
    described = {
        "format": _FORMAT,
        "provider": name.provider,
        "model": name.model,
        "address": hashlib.sha256((base_url or "").encode()).hexdigest(),
        "sampling": dict(traits.sampling),
        "max_output_tokens": max(request.max_output_tokens, traits.min_output_tokens),
        "schema": request.schema if traits.json_schema else None,
        "repetition": repetition,
        "prompt_version": request.prompt_version,
        "messages": [[message.role, message.content] for message in request.messages],
    }
    text = json.dumps(described, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


class ReplyCache:
    """One file a reply, written under a temporary name and renamed: processes may share it."""

    def __init__(self, folder: Path | None = None) -> None:
        self._given = folder
        self._warned = False

    @cached_property
    def _folder(self) -> Path:
        """Raises UsageError `no_home` where no place is named, which only stops a kept reply."""
        return self._given or cache_folder() / "llm"

    def read(self, key: str) -> CachedReply | None:
        """The reply of a call; None if it is missing or damaged."""
        try:
            file = self._file(key)
            data = file.read_bytes()
        except FileNotFoundError:
            return None
        except (OSError, UsageError) as error:
            self._warn("the reply cache cannot be read", error)
            return None
        try:
            check, _, body = data.partition(b"\n")
            if int(check, 16) != zlib.crc32(key.encode() + body):
                raise ValueError("its checksum differs")  # noqa: TRY301 - one way out for all damage
            entry = json.loads(body)
            return CachedReply(entry["text"], entry["served_model"])
        except (ValueError, KeyError, TypeError) as error:
            _log.warning(
                "a cached reply is damaged: asking again", file=str(file), error=str(error)
            )
            return None

    async def look_up(self, key: str, *, claims: bool) -> CachedReply | None:  # noqa: ARG002 - see below
        """As `read`; if the caller claims the call, others who share the cache may wait for it.

        Whoever claims a call without a reply calls `write` or `release`. On disk nobody waits:
        processes do not see what others do.
        """
        return self.read(key)

    def release(self, key: str) -> None:
        """End a claim without a reply."""

    def write(self, key: str, reply: CachedReply) -> None:
        """Keep a reply; a cache that cannot be written warns once, for the reply is not lost.

        A reply with a secret in it is not kept: masked, it would come back as another reply.
        """
        if _has_secret(reply.text):
            return
        entry = {"text": reply.text, "served_model": redact(reply.served_model)}
        body = json.dumps(entry).encode()
        check = zlib.crc32(key.encode() + body)
        try:
            with replacing(self._file(key), durable=False) as file:
                file.write_masked(Masked(b"%08x\n" % check + body))
        except (ResultsError, UsageError) as error:
            self._warn("the reply cache cannot be written: replies are used but not kept", error)

    def stats(self) -> CacheStats:
        """Count what is there."""
        found = list(self._entries())
        return CacheStats(
            self._folder,
            len(found),
            sum(size for _, size, _ in found),
            min((at for _, _, at in found), default=None),
        )

    def prune(self, older_than_s: float = 0.0) -> int:
        """Remove entries that were written so long ago, and return how many; 0 removes all."""
        limit = time.time() - older_than_s
        removed = 0
        for file, _, written_at in list(self._entries()):
            if older_than_s == 0 or written_at < limit:
                file.unlink(missing_ok=True)
                removed += 1
        return removed

    def _entries(self) -> Iterator[tuple[Path, int, float]]:
        for file in self._folder.glob("??/*"):
            try:
                stat = file.stat()
            except FileNotFoundError:
                continue
            yield file, stat.st_size, stat.st_mtime

    def _file(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.json"

    def _warn(self, message: str, error: OSError | ValueError | MemconformError) -> None:
        if not self._warned:
            self._warned = True
            _log.warning(message, error=str(error))


def _has_secret(text: str) -> bool:
    """Whether a reply would be masked; in one of JSON only strings are, and no numbers."""
    try:
        value = json.loads(text)
    except ValueError:
        return hides(text)
    return bool(redact_values(value) != value)
