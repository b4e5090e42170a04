"""The folder of a replay is continued by the same command, and by no other."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from memconform.concurrency import interruption
from memconform.errors import UsageError
from memconform.replay.manifest import RunManifest, require_continuable
from memconform.storage.provenance import HostOrigin
from tests.unit.lme_results import SETTINGS


def _folder(folder: Path, *parts: str) -> Path:
    manifest = RunManifest(
        started_at=datetime.now(UTC),
        exit_code=0,
        **dict(HostOrigin.of(())),
        settings=SETTINGS,
        parts=list(parts),
    )
    (folder / "manifest.json").write_text(manifest.model_dump_json())
    return folder


def test_an_sdk_that_is_built_now_joins_the_others(tmp_path: Path) -> None:
    folder = _folder(tmp_path, "go", "py")
    require_continuable(folder, ["go", "ts", "py"])
    require_continuable(folder, ["go", "py"])
    for parts in (["py", "go"], ["go"], ["go", "ts"]):
        with pytest.raises(UsageError, match="other settings: parts"):
            require_continuable(folder, parts)


def test_an_interruption_names_what_continues_it() -> None:
    assert "--resume asks" in interruption().hint
    assert "; the same command asks" in interruption("the same command").hint
