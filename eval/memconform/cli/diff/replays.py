"""What `memconform diff` does with two results of the replay."""

from pathlib import Path

from memconform.cli.diff.command import INCONCLUSIVE, ReviewOptions, latency_codes, limit_of
from memconform.cli.output_files import write_report
from memconform.errors import ExitCode, UsageError, gravest
from memconform.printing.output import echo
from memconform.replay.jeffs_brain_results import read_jeffs_brain_result
from memconform.replay.overrides import overrides_file, read_overrides, with_overrides
from memconform.replay.review import ReviewSide, review
from memconform.replay.stored_results import find_result_file, read_lme_result
from memconform.reports.lme_review import lme_review_banner, lme_review_markdown, show_lme_review
from memconform.stats.intervals import LEAST_CLUSTERS
from memconform.stats.paired_comparison import ParityVerdict


def run(options: ReviewOptions) -> ExitCode:
    """Compare two results and report.

    Raises:
        UsageError: if a result cannot be read, or the two cannot be compared.
    """
    files = [find_result_file(reference) for reference in (options.first, options.second)]
    if files[0].resolve() == files[1].resolve():
        raise UsageError(
            f"{files[0]} was given twice", code="one_run_twice", hint="give two results"
        )
    before, after = (_side(file, overrides=options.overrides) for file in files)
    report = review(before, after, across_rubrics=options.across_rubrics, seed=options.seed)
    codes = [ExitCode(report.exit_code)]
    undecided = report.overall.verdict is ParityVerdict.INCONCLUSIVE
    if INCONCLUSIVE in options.fail_on and undecided:
        codes.append(ExitCode.INCONCLUSIVE)
    if "regression" in options.fail_on and report.regressions:
        codes.append(ExitCode.FAILED)
    for limit in filter(None, (limit_of(each, INCONCLUSIVE) for each in options.fail_on)):
        compared, is_whole = report.overall.compared, not report.not_measured
        codes += latency_codes(report.latency, limit, compared=compared, is_whole=is_whole)
        if report.latency is None:
            echo(
                f"the latency ratio is undecided: it needs {LEAST_CLUSTERS} questions with a"
                " retrieval's latency in both results, by the same endpoint, and none of an agent,"
                " whose searches overlap",
                err=True,
            )
    report = report.model_copy(update={"exit_code": gravest(codes)})
    if not options.quiet:
        show_lme_review(report)
    targets = (options.json_file, options.markdown)
    write_report(report, lambda: lme_review_markdown(report), *targets)
    echo(lme_review_banner(report), err="-" in targets)
    return ExitCode(report.exit_code)


def _side(file: Path, *, overrides: bool) -> ReviewSide:
    foreign = read_jeffs_brain_result(file, overrides=overrides)
    if foreign is not None:
        return ReviewSide.of_jeffs_brain(file, foreign)
    result = read_lme_result(file)
    if not overrides:
        return ReviewSide.of(file, result)
    verdicts = read_overrides(overrides_file(file), result)
    return ReviewSide.of(file, with_overrides(result, verdicts), len(verdicts))
