"""What the judges of a run did, as lines."""

from collections.abc import Iterator

from memconform.printing.plurals import plural
from memconform.reports.rates import format_rate
from memconform.scoring.judge.summary import JudgingSummary


def reasoning_notice(answers: int, *, stripped: bool) -> str:
    """Say how many answers have blocks of reasoning, and what became of these."""
    count = plural(answers, "answer", spec=",")
    if stripped:
        return f"scored without their reasoning (<think>…</think>): {count}"
    return (
        f"scored with their reasoning (<think>…</think>), as a part of the answer: {count};"
        " --strip-reasoning removes it"
    )


def judging_lines(summary: JudgingSummary) -> Iterator[str]:
    """What the judges of a run did, a line each; figures first."""
    for use in summary.judges:
        parts = [f"{use.model}: {plural(use.verdicts, 'verdict')}"]
        if use.cached:
            parts.append(f"{use.cached} from the cache")
        if use.failed:
            parts.append(f"{use.failed} failed")
        if use.contradicted:
            parts.append(f"{use.contradicted} contradicted")
        parts.append(f"{use.input_tokens} tokens in, {use.output_tokens} out, ${use.cost_usd:.4f}")
        yield ", ".join(parts)
        if (note := use.calibration) is not None:
            accepts = ", ".join(
                f"{group} {100 * rate.rate:.1f} %"
                for group, rate in note.false_accepts.items()
                if rate.rate is not None
            )
            rejects = note.false_rejects.rate
            rejected = "" if rejects is None else f"; rejects right {100 * rejects:.1f} %"
            yield f"calibrated {note.measured_at[:10]}: accepts {accepts}{rejected}"
    if summary.settled:
        yield f"{plural(summary.settled, 'answer')} needed no judge"
    if (agreement := summary.agreement) is not None:
        yield (
            f"judges agree: Fleiss' kappa"
            f" {_coefficient(agreement.fleiss_kappa, agreement.fleiss_interval)},"
            " Krippendorff's alpha"
            f" {_coefficient(agreement.krippendorff_alpha, agreement.alpha_interval)}"
        )
    for corrected in summary.corrected:
        rate = format_rate(corrected.rate, corrected.interval, measured=1)
        yield (
            f"pass rate of measured answers without the judge's errors, if wrong answers are"
            f" {corrected.wrong_answers}: {rate}"
        )
    yield from summary.notes


def _coefficient(value: float | None, interval: tuple[float, float] | None) -> str:
    return "undefined" if value is None else format_rate(value, interval, measured=1)
