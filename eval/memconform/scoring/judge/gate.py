"""Whether judges may decide over a floor."""

from collections.abc import Sequence
from pathlib import Path

from memconform.errors import UsageError
from memconform.llm.names import ModelName
from memconform.llm.prices import Prices
from memconform.scoring.judge.calibration import Calibration, load_calibration
from memconform.scoring.judge.records import JudgeSettings


def require_pinned(names: Sequence[ModelName], prices: Prices) -> None:
    """Refuse a floating alias.

    Raises:
        UsageError: `floating_judge`, naming the snapshot where one is known.
    """
    for name in names:
        traits = prices.traits(name)
        if traits.floating:
            pinned = f"--judge {name.provider}:{traits.snapshot}" if traits.snapshot else ""
            raise UsageError(
                f"{name} is a floating alias; a floor requires a fixed version of a model",
                code="floating_judge",
                hint=f"use {pinned or 'a fixed version'}, or --accept-floating-judge, or --floor 0",
            )


def calibrations(settings: JudgeSettings, results: Path) -> dict[str, Calibration | None]:
    """What is known of each judge; None of one that was never calibrated.

    Raises:
        ResultsError: where a calibration cannot be read.
    """
    return {
        judge.model: load_calibration(results, judge, settings.prompt) for judge in settings.models
    }


def require_trusted(known: dict[str, Calibration | None]) -> None:
    """Refuse a judge that accepts too many wrong answers; one that is unknown passes.

    Raises:
        UsageError: `weak_judge`.
    """
    for model, calibration in known.items():
        weakness = calibration.weakness() if calibration is not None else ""
        if calibration is None or not weakness:
            continue
        raise UsageError(
            f"{model} {weakness}, by its calibration of {calibration.measured_at}",
            code="weak_judge",
            hint="use another judge, or --accept-weak-judge, or --floor 0",
        )
