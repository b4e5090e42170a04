"""What a part's result was made of, and the folder in which a replay may be continued."""

import fcntl
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from memconform.errors import UsageError
from memconform.ingest.records import SeedRecord
from memconform.measuring.daemon_session import DaemonSession
from memconform.replay.plan import Part, ReplayPlan
from memconform.replay.records import ReplaySettings, SdkManifest
from memconform.storage.journal import require_same_settings
from memconform.storage.provenance import HostOrigin, ReportHeader
from memconform.storage.sink import replacing, unwritable

_LOCK = ".lock"
RUN_SCHEMA: Literal["memconform/lme-run@1"] = "memconform/lme-run@1"


class RunManifest(HostOrigin, ReportHeader):
    """What a folder holds a replay of, `manifest.json`; written before the first daemon starts."""

    schema_version: Literal["memconform/lme-run@1"] = RUN_SCHEMA
    settings: ReplaySettings
    parts: list[str]


@dataclass(slots=True)
class DaemonFacts:
    """What a daemon reported of itself, and what it took."""

    index: SeedRecord | None = None
    version: str | None = None
    ready_ms: float | None = None
    rss_peak_bytes: int | None = None
    cpu_seconds: float | None = None

    def indexed(self, record: SeedRecord) -> None:
        """Note the size of the index."""
        self.index = record

    def measured(self, session: DaemonSession) -> None:
        """Note version and resources, before the daemon is stopped."""
        resources = session.daemon.resources()
        self.version = session.version.version if session.version else None
        self.ready_ms = session.daemon.ready_ms
        self.rss_peak_bytes = resources.rss_peak_bytes if resources else None
        self.cpu_seconds = resources.cpu_seconds if resources else None

    def manifest(
        self, plan: ReplayPlan, part: Part, started: datetime, exit_code: int
    ) -> SdkManifest:
        """The manifest of an SDK whose daemon was started."""
        assert part.runner is not None  # noqa: S101 - for mypy: a control has no manifest
        return SdkManifest(
            started_at=started,
            exit_code=exit_code,
            **dict(HostOrigin.of(plan.command)),
            sdk=part.name,
            version=self.version,
            build_hash=part.runner.build_hash(),
            variables=part.runner.variables(),
            upstream=part.upstream,
            documents=self.index.documents if self.index else None,
            chunks=self.index.chunks if self.index else None,
            vectors=self.index.vectors if self.index else None,
            ingest_ms=self.index.took_ms if self.index else None,
            ready_ms=self.ready_ms,
            rss_peak_bytes=self.rss_peak_bytes,
            cpu_seconds=self.cpu_seconds,
            settings=plan.settings_of(part),
        )


@contextmanager
def claimed_folder(folder: Path) -> Iterator[None]:
    """Claim the folder of a replay for this process; it is created.

    Raises:
        UsageError: if it holds something else (`output_taken`), or another process uses it
            (`output_in_use`).
        ResultsError: if it cannot be written (`results_unwritable`).
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        strange = [each.name for each in folder.iterdir()]
        if strange and not {"manifest.json", _LOCK} & set(strange):
            raise UsageError(
                f"{folder} is no folder of a replay: it has {strange[0]}",
                code="output_taken",
                hint="give a new folder as --output",
            )
        lock = (folder / _LOCK).open("w")
    except OSError as error:
        raise unwritable(folder, error) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(
                f"{folder} is in use by another replay",
                code="output_in_use",
                hint="wait for its end, or give another --output",
            ) from error
        except OSError:
            # Some network folders have no locks.
            pass
        yield


def write_manifest(plan: ReplayPlan) -> None:
    """Write what the folder holds a replay of.

    Raises:
        UsageError: if it holds a replay of other questions, SDKs or settings (`resume_mismatch`).
        ResultsError: if it cannot be written (`results_unwritable`).
    """
    manifest = RunManifest(
        started_at=datetime.now(UTC),
        exit_code=0,
        **dict(HostOrigin.of(plan.command)),
        settings=plan.settings,
        parts=[part.name for part in plan.parts],
    )
    _require_same(plan.folder, manifest)
    with replacing(plan.folder / "manifest.json") as target:
        target.write_json(manifest)


def require_continuable(folder: Path, parts: Sequence[str], **settings: object) -> None:
    """Compare what is known before the brain is made with what the folder holds a replay of.

    Args:
        folder: of the replay; one without a manifest holds nothing yet.
        parts: names of the SDKs and controls.
        settings: fields of `ReplaySettings`, those that are known.

    Raises:
        UsageError: as `write_manifest`, before anything is paid for.
    """
    _require_equal(folder, settings | {"parts": list(parts)})


def _require_same(folder: Path, manifest: RunManifest) -> None:
    settings = manifest.settings.model_dump(mode="json")
    _require_equal(folder, settings | {"parts": manifest.parts})


def _require_equal(folder: Path, mine: Mapping[str, object]) -> None:
    path = folder / "manifest.json"
    if not path.exists():
        return
    try:
        earlier = RunManifest.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise UsageError(
            f"{path} cannot be read as the manifest of a replay",
            code="output_taken",
            hint="give a new folder as --output",
        ) from error
    theirs = earlier.settings.model_dump(mode="json") | {"parts": earlier.parts}
    if set(theirs["parts"]) < set(parts := _names(mine.get("parts"))):
        # An SDK that could not be built before is built now, and joins the others.
        theirs["parts"] = parts
    differing = [name for name in mine if mine[name] != theirs[name]]
    decided = [f"{name} by {_DECIDED_BY[name]}" for name in differing if name in _DECIDED_BY]
    require_same_settings(
        path,
        {name: theirs[name] for name in mine},
        mine,
        hint="give another --output, or the same flags and variables as before"
        + (f"; {', '.join(decided)}" if decided else ""),
    )


def _names(parts: object) -> list[str]:
    return [str(each) for each in parts] if isinstance(parts, list) else []


_DECIDED_BY = {
    "parts": "--sdk or --benchmark-mode",
    "questions": "--sample, --seed or --sample-ids-file",
    "brain": "the questions, --ingest-mode, --extract-model, --actor-project or JB_LLM_PROVIDER",
    "reader": "--reader or JB_LLM_PROVIDER",
    "judge": "--judge or JB_LLM_PROVIDER",
}
"""What decides settings whose names do not say it."""


def command_line() -> tuple[str, ...]:
    """The command that runs, with characters that no file could hold replaced."""
    return tuple(part.encode("utf-8", "replace").decode() for part in sys.argv)
