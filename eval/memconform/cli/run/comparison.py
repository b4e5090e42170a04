"""How the runs of one command compare, and which SDKs it skipped."""

import asyncio
from collections.abc import Sequence

from memconform.daemons.availability import SkippedSdk
from memconform.errors import ExitCode
from memconform.measuring.scenarios import SCENARIOS
from memconform.printing.output import echo
from memconform.reports.machine import agreement_banner
from memconform.reports.matrix import show_matrix
from memconform.reports.parity import parity_banner, show_parity
from memconform.reports.progress import StepProgress
from memconform.results import comparison
from memconform.results.agreement import Agreement, compare_rankings
from memconform.results.loaded_runs import LoadedRun
from memconform.results.records import Pair, ParityReport
from memconform.runs.events import RunFinished
from memconform.stats.paired_comparison import ParityVerdict


class RunComparison:
    """The agreement of the finished runs of a command; there is none of fewer than two."""

    def __init__(
        self,
        finished: Sequence[RunFinished],
        *,
        required: bool = False,
        to_stderr: bool = False,
        quiet: bool = False,
    ) -> None:
        """
        Args:
            finished: runs of the same questions.
            required: whether rankings and answers must be alike.
            to_stderr: whether standard output holds the report only.
            quiet: whether to print the verdicts alone.
        """
        self.agreement: Agreement | None = None
        self.parity: ParityReport | None = None
        self._finished = finished
        self._required = required
        self._to_stderr = to_stderr
        self._quiet = quiet

    async def compare(self) -> None:
        """Compare the runs, and print the verdicts."""
        finished = self._finished
        if len(finished) < 2:
            return
        self.agreement = await asyncio.to_thread(
            compare_rankings,
            [(end.summary.sdk, end.result) for end in finished],
            answers=SCENARIOS[finished[0].summary.scenario].text_kind == "answer",
            incidents={end.summary.sdk: end.summary.incident for end in finished},
        )
        echo(agreement_banner(self.agreement), err=self._to_stderr)
        loaded_runs = [LoadedRun(end.summary.sdk, end.result, end.summary) for end in finished]
        questions = finished[0].summary.total
        with StepProgress("comparing", questions, quiet=self._quiet) as step:
            self.parity = await asyncio.to_thread(
                comparison.compare_runs, loaded_runs, on_row=step.advance
            )
        echo(parity_banner(self.parity), err=self._to_stderr)

    def show(self, skipped: Sequence[SkippedSdk]) -> None:
        """Print a row per SDK and what was skipped; quietly, only the latter."""
        if self._quiet:
            show_matrix([], skipped, None)
            return
        show_matrix([end.summary for end in self._finished], skipped, self.agreement)
        if self.parity is not None:
            show_parity(self.parity, brief=True)

    def _is_drift(self, pair: Pair) -> bool:
        """Whether two SDKs differ; a memory system is not meant to be like any other."""
        proofs = {
            end.summary.sdk: end.summary.seeded.proof
            for end in self._finished
            if end.summary.seeded is not None
        }
        promise_nothing = {sdk for sdk, proof in proofs.items() if proof and not proof.promised}
        is_drift = pair.contrast.verdict is ParityVerdict.DRIFT
        return is_drift and promise_nothing.isdisjoint((pair.first, pair.second))

    @property
    def exit_codes(self) -> list[ExitCode]:
        """What the comparison says, in addition to the runs."""
        codes = []
        if self.parity is not None and any(map(self._is_drift, self.parity.pairs)):
            codes.append(ExitCode.FAILED)
        if self._required:
            agreement = self.agreement
            codes.append(agreement.exit_code if agreement else ExitCode.INCONCLUSIVE)
        return codes
