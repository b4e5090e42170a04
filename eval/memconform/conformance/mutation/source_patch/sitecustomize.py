"""Imported by a Python daemon at startup: patches its modules as MEMCONFORM_SOURCE says.

The variable holds a JSON list of `{file, find, put}`. If a text does not occur exactly once in its
file, the daemon exits with status 96, because an unmodified daemon must not pass for a mutant.
"""

import json
import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

_EDITS: list[dict[str, str]] = json.loads(os.environ.get("MEMCONFORM_SOURCE", "[]"))


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        del fullname
        source = Path(self.path).read_text(encoding="utf-8")
        for edit in _EDITS:
            if self.path.endswith(f"/{edit['file']}"):
                if source.count(edit["find"]) != 1:
                    sys.stderr.write(f"{self.path}: {edit['find']!r} must occur exactly once\n")
                    sys.stderr.flush()
                    os._exit(96)
                source = source.replace(edit["find"], edit["put"])
        return compile(source, self.path, "exec", dont_inherit=True)


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        file = f"{fullname.replace('.', '/')}.py"
        if not any(edit["file"] == file for edit in _EDITS):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(fullname, spec.loader.path)
        return spec


sys.meta_path.insert(0, _Finder())
