"""From the questions of one part to its result."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean

from memconform.client.timings import is_short
from memconform.contract.skipped_stages import count_skips
from memconform.datasets.question import Question
from memconform.errors import ExitCode, MemconformError, gravest
from memconform.llm.accounting import CallTotals
from memconform.records import Incident
from memconform.replay.plan import Part, ReplayPlan
from memconform.replay.records import (
    CategoryScore,
    CostAccounting,
    Latencies,
    LmeQuestion,
    LmeResult,
)
from memconform.replay.stored_results import lme_scores
from memconform.scoring.accuracy import Accuracy, Estimate, accuracy, estimate
from memconform.scoring.costs import RoleCost
from memconform.scoring.retrieval import metrics
from memconform.scoring.statuses import failure_lines
from memconform.stats.clusters import mean_interval
from memconform.stats.quantiles import QuantileSummary
from memconform.storage.provenance import Start

_KS = (1, 5, 10, 20, 50)
_METRICS = ("recall_any", "recall_all", "ndcg")


def cost_accounting(by_role: Mapping[str, RoleCost]) -> CostAccounting:
    """The costs of roles that made calls, and their sum."""
    made = {name: cost for name, cost in by_role.items() if cost.calls}
    return CostAccounting(total_usd=sum(c.cost_usd for c in made.values()), by_role=made)


class ReplayResultBuilder:
    """Collects the questions of a part."""

    def __init__(self, plan: ReplayPlan, part: Part) -> None:
        self._plan = plan
        self._part = part
        self.start = Start()
        self._rows: dict[str, LmeQuestion] = {}
        self.version: str | None = None
        self.reader = CallTotals()
        self.errors: list[MemconformError] = []
        """What ended the part early."""

    def add(self, row: LmeQuestion) -> None:
        """Add a question that is done."""
        self._rows[row.id] = row

    def result(self, missing: Callable[[Question], LmeQuestion]) -> LmeResult:
        """The result; `missing` makes the row of a question that was not reached."""
        plan, part = self._plan, self._part
        rows = [self._rows.get(each.id) or missing(each) for each in plan.questions]
        passed = {row.id: row.correct for row in rows if row.measured}
        scores = lme_scores(rows)
        gold = [q for q, row in zip(plan.questions, rows, strict=True) if row.gold_retrieved]
        retrieval_ms = QuantileSummary.of(_values(row.retrieval_ms for row in rows))
        return LmeResult(
            exit_code=int(self._exit_code(rows)),
            **self.start.header(plan.command),
            sdk=part.name,
            version=self.version,
            build_hash=part.runner.build_hash() if part.runner else None,
            dataset_sha=plan.settings.dataset_sha256,
            settings=plan.settings_of(part),
            questions_run=len(rows),
            measured=len(passed),
            overall_score=_score(scores.overall),
            overall_interval=_interval(scores.overall.rate),
            task_avg_score=_fraction(scores.task_averaged.rate),
            abstention_score=_score(scores.abstention),
            by_category={name: _category(each) for name, each in scores.by_category.items()},
            exact_match=_mean(
                [row.exact_match for row in rows if row.measured and row.exact_match is not None]
            ),
            scores=scores,
            retrieval=_retrieval(plan, rows) if part.control is None else {},
            skipped_stages=count_skips(row.skipped_stage for row in rows),
            rising_scores=sum(row.rises for row in rows),
            short_rankings=sum(row.is_short for row in rows),
            null_lists=sum(row.null_chunks for row in rows),
            empty_rankings=sum(row.measured and not row.hits for row in rows)
            if part.control is None
            else 0,
            correct_given_gold=accuracy(gold, passed) if gold else None,
            cost_accounting=cost_accounting(
                {
                    "reader": RoleCost.of_calls(self.reader),
                    "judge": RoleCost.of_votes(vote for row in rows for vote in row.votes),
                }
            ),
            latency_p50_ms=retrieval_ms.p50 if retrieval_ms and plan.agent is None else None,
            latency=Latencies(
                retrieval=retrieval_ms,
                reader=QuantileSummary.of(_values(row.reader_ms for row in rows)),
                judge=QuantileSummary.of(_values(row.judge_ms for row in rows)),
            ),
            short_latencies=sum(is_short(row.retrieval_ms, row.daemon_ms) for row in rows),
            failures=failure_lines(
                (row.code, row.id, row.reason) for row in rows if not row.measured
            ),
            incident=Incident.of(self.errors[0]) if self.errors else None,
            mode_rule=plan.mode_rule if part.control is None else None,
            questions=rows,
        )

    def _exit_code(self, rows: Sequence[LmeQuestion]) -> ExitCode:
        codes = [error.exit_code for error in self.errors]
        known = {error.code for error in self.errors}
        # What an error that concerns all calls left unmeasured has that error's code.
        if any(not row.measured and row.code not in known for row in rows):
            codes.append(ExitCode.DAEMON)
        return gravest(codes)


def _values(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _mean(values: Sequence[bool]) -> float | None:
    return fmean(values) if values else None


def _score(scored: Accuracy) -> float | None:
    """The rate as the fraction that it is; its percentage, divided by 100, may be another float."""
    return None if scored.rate is None else scored.correct / scored.expected


def _fraction(rate: Estimate | None) -> float | None:
    return None if rate is None else rate.value / 100


def _interval(rate: Estimate | None) -> tuple[float, float] | None:
    return None if rate is None else (rate.low / 100, rate.high / 100)


def _category(scored: Accuracy) -> CategoryScore:
    return CategoryScore(
        questions=scored.expected,
        measured=scored.measured,
        correct=scored.correct,
        score=_score(scored),
        interval=_interval(scored.rate),
    )


def _retrieval(plan: ReplayPlan, rows: Sequence[LmeQuestion]) -> dict[str, Estimate]:
    """The judge-free metrics of the sessions with an answer, over questions that have one."""
    scored = [row for row in rows if row.answer_session_ids and not row.abstention]
    if not scored or any(row.gold_retrieved is None for row in scored):
        return {}
    ks = [k for k in _KS if k <= plan.settings.retrieval.top_k]
    values = [
        metrics(list(dict.fromkeys(hit.session for hit in row.hits)), row.answer_session_ids, ks)
        for row in scored
    ]
    ids = [row.id for row in scored]
    names = [f"{name}@{k}" for k in ks for name in _METRICS]
    return {
        name: estimate(fmean(column), mean_interval(column, ids))
        for name in names
        for column in [[each[name] for each in values]]
    }
