"""All brains of one state folder."""

import re
import shutil
import threading
from pathlib import Path

from memoryd.brain import Brain
from memoryd.commit import sweep
from memoryd.embedding import Embedder, RemoteEmbedder
from memoryd.problems import Problem, invalid

_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")


class BrainStore:
    def __init__(self, home: Path, embedder: Embedder | None) -> None:
        self._home = home
        self._embedder = embedder
        self._brains: dict[str, Brain] = {}
        self._lock = threading.Lock()
        """Guards the set of brains; not held during calls to a service."""
        for folder in ("brains", "meta", "descriptions", "staging", "index/py"):
            (home / folder).mkdir(parents=True, exist_ok=True)
        sweep(home / "staging")

    def open_all(self) -> None:
        """Open all brains, unless that needs a service: then their first request opens them."""
        if isinstance(self._embedder, RemoteEmbedder):
            return
        for brain_id in self.ids():
            self.get(brain_id).open()

    def close(self) -> None:
        for brain in list(self._brains.values()):
            brain.close()
        self._brains.clear()

    def ids(self) -> list[str]:
        folders = (self._home / "brains").iterdir()
        return sorted(f.name for f in folders if _ID.fullmatch(f.name) and _is_brain(f))

    def get(self, brain_id: str) -> Brain:
        """Raises Problem: `validation_error` for a malformed id, `not_found` for an unknown one."""
        require_valid_id(brain_id)
        brain = self._brains.get(brain_id)
        if brain is not None:
            return brain
        with self._lock:
            if not _is_brain(self._home / "brains" / brain_id):
                raise Problem("not_found", f"no brain {brain_id!r}")
            return self._brains.setdefault(brain_id, self._brain(brain_id))

    def create(self, brain_id: str, description: str | None) -> Brain:
        """Raises Problem: `validation_error` for a malformed id, `conflict` if it exists."""
        require_valid_id(brain_id)
        with self._lock:
            try:
                (self._home / "brains" / brain_id).mkdir()
            except FileExistsError:
                raise Problem("conflict", f"brain {brain_id!r} already exists") from None
            shutil.rmtree(self._home / "meta" / brain_id, ignore_errors=True)
            if description is not None:
                (self._home / "descriptions" / f"{brain_id}.txt").write_text(description, "utf-8")
            brain = self._brains[brain_id] = self._brain(brain_id)
            return brain

    def delete(self, brain_id: str) -> None:
        brain = self.get(brain_id)
        with self._lock:
            trash = brain.delete()
            self._brains.pop(brain_id, None)
        shutil.rmtree(trash, ignore_errors=True)

    def _brain(self, brain_id: str) -> Brain:
        return Brain(self._home, brain_id, self._embedder)


def _is_brain(folder: Path) -> bool:
    """A link is not a brain: it may lead anywhere."""
    return folder.is_dir() and not folder.is_symlink()


def require_valid_id(brain_id: str) -> None:
    if brain_id in (".", "..") or not _ID.fullmatch(brain_id):
        raise invalid(f"brainId: {brain_id!r} is not [A-Za-z0-9._-]{{1,128}}")
