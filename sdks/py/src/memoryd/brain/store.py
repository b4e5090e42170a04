"""All brains of one state folder."""

import logging
import os
import re
import shutil
import threading
from contextlib import suppress
from pathlib import Path

from memoryd.brain.brain import Brain
from memoryd.brain.layout import INDEX_SUFFIX, Layout, create_folders
from memoryd.embed.embed import Embedder
from memoryd.embed.openai import OpenAIEmbedder
from memoryd.files.regular import is_folder
from memoryd.files.staging import Staging
from memoryd.problem import Problem, invalid

_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")

_log = logging.getLogger(__name__)


class BrainStore:
    def __init__(self, home: Path, embedder: Embedder | None) -> None:
        self._home = home
        self._embedder = embedder
        self._brains: dict[str, Brain] = {}
        self._lock = threading.Lock()
        """Guards the set of brains; not held during calls to a service."""
        create_folders(home)
        # Before any brain is opened, because opening reconciles the index with the files.
        self._staging = Staging(home)
        self._remove_orphans()

    def _remove_orphans(self) -> None:
        """Remove the indexes of brains whose folder was removed by hand while no daemon ran.

        They hold the text of the documents, as do the indexes of a former version.
        """
        for suffix in ("", "-wal", "-shm", "-journal"):
            for former in (self._home / "index" / "py").glob(f"*.sqlite{suffix}"):
                try:
                    former.unlink(missing_ok=True)
                except OSError as error:
                    _log.warning("cannot remove an index of a former version: %s", error)
        files = list((self._home / "index" / "py").glob(f"*{INDEX_SUFFIX}*"))
        for brain_id in {file.name.rpartition(INDEX_SUFFIX)[0] for file in files}:
            if _ID.fullmatch(brain_id) and not is_folder(self._home / "brains" / brain_id):
                try:
                    self._brain(brain_id).discard()
                except OSError as error:
                    _log.warning("cannot remove the index of the brain %r: %s", brain_id, error)

    def open_all(self) -> None:
        """Open all brains, unless that needs a service: then their first request opens them.

        One that cannot be opened does not keep the others from being served.
        """
        if isinstance(self._embedder, OpenAIEmbedder):
            return
        for brain_id in self.ids():
            try:
                self.get(brain_id).open()
            except Exception as error:  # noqa: BLE001 - whatever it is, it concerns one brain
                _log.warning("cannot open the brain %r: %s", brain_id, error)

    def close(self) -> None:
        for brain in list(self._brains.values()):
            brain.close()
        self._brains.clear()
        self._staging.close()

    def ids(self) -> list[str]:
        folders = (self._home / "brains").iterdir()
        return sorted(f.name for f in folders if _ID.fullmatch(f.name) and is_folder(f))

    def get(self, brain_id: str) -> Brain:
        """Raises Problem: `validation_error` for a malformed id, `not_found` for an unknown one."""
        require_valid_id(brain_id)
        # Not by the Layout: each request would take 15 µs longer.
        documents = f"{self._home}/brains/{brain_id}"
        brain = self._brains.get(brain_id)
        if brain is not None and is_folder(documents):
            return brain
        with self._lock:
            if not is_folder(documents):
                self._discard(brain_id)
                raise Problem("not_found", f"no brain {brain_id!r}")
            return self._brains.setdefault(brain_id, self._brain(brain_id))

    def create(self, brain_id: str, description: str | None) -> Brain:
        """Raises Problem: `validation_error` for a malformed id, `conflict` if it exists."""
        require_valid_id(brain_id)
        layout = Layout.of(self._home, brain_id)
        with self._lock, self._staging.exclusive():
            if os.path.lexists(layout.documents):
                raise Problem("conflict", f"brain {brain_id!r} already exists")
            self._discard(brain_id)
            # An undo must find that the brain of this id is gone.
            self._staging.recover()
            work = self._staging.new_folder()
            try:
                _write_description(work, layout, description)
                # Last, so that the brain is created as a whole.
                layout.documents.mkdir()
            finally:
                shutil.rmtree(work, ignore_errors=True)
            brain = self._brains[brain_id] = self._brain(brain_id)
            return brain

    def _discard(self, brain_id: str) -> None:
        """Forget a brain whose folder was removed by hand."""
        brain = self._brains.pop(brain_id, None)
        if brain is not None:
            brain.discard()

    def delete(self, brain_id: str) -> None:
        brain = self.get(brain_id)
        with self._lock, self._staging.exclusive():
            trash = brain.delete()
            self._brains.pop(brain_id, None)
        shutil.rmtree(trash, ignore_errors=True)

    def _brain(self, brain_id: str) -> Brain:
        return Brain(self._home, brain_id, self._embedder, self._staging)


def _write_description(work: Path, layout: Layout, description: str | None) -> None:
    """Replace what is left of a brain that was deleted by hand, or until its daemon died."""
    for left in (layout.sidecars, layout.description):
        with suppress(FileNotFoundError):
            left.rename(work / left.parent.name)
    if description is not None:
        new = work / "description"
        new.write_bytes(description.encode())
        new.rename(layout.description)


def require_valid_id(brain_id: str) -> None:
    if brain_id in (".", "..") or not _ID.fullmatch(brain_id):
        raise invalid(f"brainId: {brain_id!r} is not [A-Za-z0-9._-]{{1,128}}")
