"""Counts what a run's judges did."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memconform.errors import MemconformError
from memconform.printing.commands import suggested_command
from memconform.scoring.judge.calibration import Calibration
from memconform.scoring.judge.records import JudgeSettings, JudgeVote, unfinished_votes
from memconform.scoring.judge.summary import (
    CalibrationNote,
    CorrectedPassRate,
    JudgeUse,
    JudgingSummary,
    PanelAgreement,
)
from memconform.scoring.statuses import QuestionStatus
from memconform.stats.prevalence import rogan_gladen
from memconform.stats.raters import alpha_agreement, fleiss_agreement, percent_agreement

_RESAMPLES = 2_000
"""Resamples for the interval of an agreement: stored results have it of 2,000."""


@dataclass(slots=True)
class JudgingTally:
    """Counts votes as results come."""

    settings: JudgeSettings
    calibrations: Mapping[str, Calibration | None]
    reader_provider: str | None = None
    """The vendor whose model wrote the answers, if it is known."""
    calibratable: bool = True
    """Whether `judge calibrate` measures judges with this prompt."""
    _votes: dict[str, list[JudgeVote]] = field(default_factory=lambda: defaultdict(list))
    _unfinished: dict[str, list[JudgeVote]] = field(default_factory=lambda: defaultdict(list))
    _panels: list[tuple[str | None, ...]] = field(default_factory=list)
    _settled: int = 0
    _settled_passed: int = 0

    def add(self, votes: Sequence[JudgeVote], verdicts: Sequence[QuestionStatus]) -> None:
        """Count a question's votes, and the verdict of each of its attempts in their order."""
        for vote in votes:
            self._votes[vote.model].append(vote)
        size = len(self.settings.models)
        for start in range(0, len(votes), size):
            self._panels.append(tuple(vote.verdict for vote in votes[start : start + size]))
        judged = {vote.attempt for vote in votes}
        for attempt, verdict in enumerate(verdicts):
            if verdict.measured and attempt not in judged:
                self._settled += 1
                self._settled_passed += verdict is QuestionStatus.CORRECT

    def add_unfinished(self, error: MemconformError | None) -> None:
        """Count the tokens and cost of panels that an error ended before they decided.

        Their votes are no verdicts: the answers are not judged.
        """
        for vote in unfinished_votes(error):
            self._unfinished[vote.model].append(vote)

    def summary(self, *, void: bool) -> JudgingSummary:
        """The summary of what was added; a run without a pass rate has no corrected one either."""
        judges = [self._use(judge.model) for judge in self.settings.models]
        return JudgingSummary(
            prompt=self.settings.prompt,
            judged=len(self._panels),
            settled=self._settled,
            cost_usd=sum(use.cost_usd for use in judges),
            judges=judges,
            agreement=self._agreement(),
            corrected=[] if void else self._corrected(),
            notes=list(self._notes(judges)),
        )

    def _use(self, model: str) -> JudgeUse:
        votes = self._votes[model]
        paid = [*votes, *self._unfinished[model]]
        known = self.calibrations.get(model)
        return JudgeUse(
            model=model,
            served_models=sorted({vote.served_model for vote in paid} - {""}),
            verdicts=sum(vote.verdict is not None for vote in votes),
            failed=sum(vote.verdict is None for vote in votes),
            cached=sum(vote.cached for vote in votes),
            contradicted=sum(len(set(vote.verdicts)) > 1 for vote in votes),
            input_tokens=sum(vote.input_tokens for vote in paid),
            output_tokens=sum(vote.output_tokens for vote in paid),
            cost_usd=sum(vote.cost_usd for vote in paid),
            calibration=None if known is None else _note(known),
        )

    def _agreement(self) -> PanelAgreement | None:
        if len(self.settings.models) < 2:
            return None
        complete = [panel for panel in self._panels if None not in panel]
        counts = [[panel.count("correct"), panel.count("incorrect")] for panel in complete]
        fleiss = fleiss_agreement(counts, resamples=_RESAMPLES) if counts else None
        alpha = alpha_agreement(self._panels, resamples=_RESAMPLES)
        return PanelAgreement(
            answers=len(self._panels),
            equal_pairs=percent_agreement(self._panels),
            fleiss_kappa=fleiss.value if fleiss else None,
            fleiss_interval=fleiss.interval if fleiss else None,
            krippendorff_alpha=alpha.value if alpha else None,
            alpha_interval=alpha.interval if alpha else None,
        )

    def _corrected(self) -> list[CorrectedPassRate]:
        if len(self.settings.models) != 1:
            return []
        model = self.settings.models[0].model
        calibration = self.calibrations.get(model)
        verdicts = [vote.verdict for vote in self._votes[model] if vote.verdict is not None]
        if calibration is None:
            return []
        rates = []
        for group in ("specific-wrong", "vague-wrong"):
            corrected = rogan_gladen(
                verdicts.count("correct"),
                len(verdicts),
                sensitivity=calibration.sensitivity,
                specificity=calibration.specificity(group),
            )
            if corrected is None:
                continue
            total = len(verdicts) + self._settled
            rate, low, high = (
                (value * len(verdicts) + self._settled_passed) / total
                for value in (corrected.rate, *corrected.interval)
            )
            rates.append(CorrectedPassRate(wrong_answers=group, rate=rate, interval=(low, high)))
        return rates

    def _notes(self, judges: Sequence[JudgeUse]) -> list[str]:
        notes = []
        for use in judges:
            provider, _, name = use.model.partition(":")
            if use.calibration is None and self.calibratable:
                command = suggested_command("judge", "calibrate", "--judge", use.model)
                notes.append(f"{use.model} was never calibrated: {command}")
            elif use.calibration is not None and use.calibration.weakness:
                notes.append(f"{use.model} {use.calibration.weakness}, by its calibration")
            others = [served for served in use.served_models if served != name]
            if others:
                notes.append(f"{use.model} was served by {', '.join(others)}")
            if self.reader_provider == provider:
                notes.append(f"{use.model} judges answers of its own vendor's reader")
        return notes


def _note(calibration: Calibration) -> CalibrationNote:
    return CalibrationNote(
        measured_at=calibration.measured_at,
        false_rejects=calibration.groups["right"],
        false_accepts={
            group: rate for group, rate in calibration.groups.items() if group != "right"
        },
        weak=list(calibration.weak_groups),
        weakness=calibration.weakness(),
        repeated=calibration.repeated,
        contradicted=calibration.contradicted,
    )
