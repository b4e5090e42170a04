"""How often a judge errs on labelled answers: its calibration, and the files of calibrations."""

import hashlib
import json
import re
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from memconform.datasets.registry import judge_calibration
from memconform.errors import ResultsError
from memconform.llm.records import ModelSettings
from memconform.records import Record
from memconform.scoring.judge.records import ErrorRate, Group
from memconform.stats.prevalence import is_better_than_chance
from memconform.storage.sink import replacing, unwritable
from memconform.validation_faults import first_fault

CALIBRATION_SCHEMA: Literal["memconform/calibration@1"] = "memconform/calibration@1"

MAX_FALSE_ACCEPTS = 0.05
"""A judge that accepts more of what is wrong, of any group, is no gate."""

WRONG_GROUPS: tuple[Group, ...] = ("specific-wrong", "vague-wrong", "injected")
"""Never pooled: judges that accept many vague answers may reject each wrong number."""


class KindRate(Record):
    kind: str
    group: Group
    error: ErrorRate
    settled: int
    """Items of it that the text alone settled, without a call."""


class Calibration(Record):
    """What was measured of one judge with one prompt."""

    schema_version: Literal["memconform/calibration@1"] = CALIBRATION_SCHEMA
    judge: ModelSettings
    served_models: list[str]
    prompt: str
    """Digest of the judge's prompt."""
    items_sha256: str
    """Hash of the calibration set."""
    measured_at: str
    items: int
    settled: int
    failed: int
    """Items on which the judge gave no valid verdict."""
    groups: dict[Group, ErrorRate]
    """False rejects of `right`, false accepts of the others; settled items are not counted."""
    failed_by_group: dict[Group, int]
    kinds: list[KindRate]
    errors: ErrorRate
    """Over all judged items; says nothing without the next two."""
    base_rate: float
    """Share of items that are correct."""
    constant_judge: float
    """Share of items that a judge is right on that always gives the more frequent verdict."""
    length_bias: float | None = Field(ge=-1, le=1)
    """False-accept rate of long wrong answers minus that of the other specific wrong ones."""
    repeated: int
    """Items that were asked again."""
    contradicted: int
    """Those of them whose verdict changed."""
    input_tokens: int
    output_tokens: int
    cost_usd: float

    @property
    def weak_groups(self) -> list[Group]:
        """Groups of wrong answers that the judge accepts, or leaves unjudged, too often.

        A judge that fails on what it would have accepted must not look careful. `right` is among
        them if the judge is no better than chance: rejecting everything is no care either.
        """
        weak = [group for group in WRONG_GROUPS if self._is_weak(group)]
        specificity = self.specificity("specific-wrong")
        if not is_better_than_chance(self.sensitivity, specificity):
            weak.append("right")
        return weak

    def _is_weak(self, group: Group) -> bool:
        error, failed = self.groups[group], self.failed_by_group[group]
        items = error.items + failed
        return error.rate is None or (
            error.rate > MAX_FALSE_ACCEPTS or failed / items > MAX_FALSE_ACCEPTS
        )

    def weakness(self) -> str:
        """What makes the judge weak, for a message; empty if it is not."""
        parts = []
        for group in self.weak_groups:
            if group == "right":
                parts.append("tells right from wrong answers no better than chance")
                continue
            error, failed = self.groups[group], self.failed_by_group[group]
            if error.rate is not None and error.rate > MAX_FALSE_ACCEPTS:
                parts.append(f"accepts {100 * error.rate:.0f} % of {group} answers")
            else:
                parts.append(f"gave no verdict on {failed} {group} answers")
        return ", ".join(parts)

    @property
    def sensitivity(self) -> tuple[int, int]:
        """Right answers that were accepted, and how many there were."""
        right = self.groups["right"]
        return right.items - right.errors, right.items

    def specificity(self, group: Group) -> tuple[int, int]:
        """Wrong answers of a group that were rejected, and how many there were."""
        wrong = self.groups[group]
        return wrong.items - wrong.errors, wrong.items


def calibration_file(results: Path, judge: ModelSettings, prompt: str, items_sha256: str) -> Path:
    """Where the calibration of a judge is kept: by model, address, sampling, prompt and set."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", judge.model)[:80]
    identity = json.dumps([judge.model_dump(), prompt, items_sha256], sort_keys=True, default=str)
    digest = hashlib.sha256(identity.encode()).hexdigest()[:12]
    return results / "calibrations" / f"{name}-{digest}.json"


def make_folder(results: Path) -> None:
    """Make the folder of calibrations, before anything is paid for; raises ResultsError."""
    folder = results / "calibrations"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from error


def save_calibration(calibration: Calibration, results: Path) -> Path:
    """Write a calibration in the results folder; raises ResultsError."""
    make_folder(results)
    file = calibration_file(
        results, calibration.judge, calibration.prompt, calibration.items_sha256
    )
    with replacing(file) as opened:
        opened.write_json(calibration)
    return file


def load_calibration(results: Path, judge: ModelSettings, prompt: str) -> Calibration | None:
    """The calibration of a judge as it is asked now, by the shipped set; None where there is none.

    A set of a user's own is reported, and decides nothing: a few easy items would trust any judge.

    Raises:
        ResultsError: `calibration_unreadable`; a damaged file is not the same as none.
    """
    shipped = hashlib.sha256(judge_calibration().read_bytes()).hexdigest()
    file = calibration_file(results, judge, prompt, shipped)
    try:
        return Calibration.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        fault = first_fault(error) if isinstance(error, ValidationError) else str(error)
        raise ResultsError(
            f"{file} is not a calibration: {fault}",
            code="calibration_unreadable",
            hint="delete it, and run memconform judge calibrate again",
        ) from error
