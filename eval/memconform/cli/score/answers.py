"""What `memconform score` does with a bench."""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from memconform.bench.answering.forecast import ReadingForecaster
from memconform.bench.answering.plan import AnswerPlan, AnswerTask, Arm
from memconform.bench.answering.records import AnswerSettings, ArmAnswer
from memconform.bench.answering.report_builder import AnswersFinished
from memconform.bench.answering.schedule import answer_questions
from memconform.bench.digests import digest_of_names
from memconform.bench.stored_rows import StoredRow, load_rows
from memconform.cli.errata import disputed_answers
from memconform.cli.events import dispatch
from memconform.cli.interrupts import cancel_on_signals, run_to_end
from memconform.cli.judge_session import judge_spec, show_forecasts
from memconform.cli.lazy import require_extra
from memconform.cli.output_files import json_target
from memconform.cli.score.answer_plan import (
    arms_of,
    reader_settings,
    require_ranks,
    require_same_data,
    suite_of,
    tasks_of,
    wording_of,
)
from memconform.cli.score.command import RUBRICS, AnswerOptions
from memconform.datasets.answer_keys import AnswerKey, Suite, read_answer_key
from memconform.datasets.conversation_store import ConversationStore
from memconform.datasets.selection import expect_known
from memconform.datasets.sources import find_data
from memconform.errors import ExitCode, UsageError
from memconform.llm.cache import ReplyCache
from memconform.llm.names import ModelName
from memconform.llm.prices import Prices
from memconform.llm.records import ModelSettings
from memconform.llm.session import Model
from memconform.llm.settings import address
from memconform.printing.output import echo
from memconform.printing.plurals import plural
from memconform.redaction import hides
from memconform.reports.answers import answer_lines, show_answers
from memconform.reports.progress import RecordProgress
from memconform.reports.run_judges import reasoning_notice
from memconform.scoring.judge.forecast import forecast_judging
from memconform.scoring.judge.rubric import Rubric
from memconform.scoring.judge.rubrics import OWN_RUBRICS
from memconform.scoring.judge.scorer import JudgeScorer
from memconform.scoring.judge.session import judge_names, open_session
from memconform.scoring.reader.prompts import Wording
from memconform.scoring.reader.reader import Reader
from memconform.storage.folders import RunFolder, new_run_id
from memconform.storage.sink import replacing


def answer(options: AnswerOptions) -> ExitCode:
    """Answer and judge, or print what that would take.

    Raises:
        UsageError: for results, data, models or flags that cannot be used.
    """
    if not options.cache:
        raise UsageError(
            "with --no-cache, a retry after a failure would pay for every call again",
            code="cache_flags",
            hint="omit it: equal calls are made once, and a failed one is not cached",
        )
    # Whatever is wrong with them is said before the data is read.
    ModelName.parse(options.reader, options.model_env)
    if options.hypotheses is not None:
        options.hypotheses.mkdir(parents=True, exist_ok=True)
    rows = load_rows(options.results, options.output)
    suite = suite_of(rows)
    if suite == "locomo":
        require_extra("qa")
    require_ranks(rows, options.top_k)
    wording = wording_of(options, suite)
    path = find_data(options.data or rows[0].report.source.path)
    key = read_answer_key(path, suite)
    require_same_data(key, rows)
    tasks = tasks_of(rows, key)
    rubric = options.rubric or ("longmemeval" if suite == "longmemeval" else "strict")
    expect_known(
        [rubric],
        OWN_RUBRICS,
        "there is no rubric",
        f"use {', '.join(RUBRICS)}",
        code="unknown_rubric",
    )
    for task in tasks:
        OWN_RUBRICS[rubric].require_scorable(task.question)
    arms = arms_of(options.arms, rows, strip_reasoning=options.strip_reasoning)
    for arm in arms:
        if count := arm.reasoning:
            notice = reasoning_notice(count, stripped=options.strip_reasoning)
            echo(f"  {arm.name}: {notice}", err=True)
    with ConversationStore() as conversations:
        conversations.load(path, suite, {task.haystack for task in tasks})
        if conversations.sha256 != key.sha256:
            raise UsageError(
                f"{path} changed while it was read",
                code="dataset_changed",
                hint="run the command again once nobody writes to it",
            )
        work = _Work(
            options=options,
            rows=rows,
            suite=suite,
            key=key,
            arms=_with_files(arms),
            tasks=tasks,
            conversations=conversations,
            wording=wording,
            rubric_name=rubric,
        )
        if options.dry_run:
            work.show_forecast()
            return ExitCode.OK
        return run_to_end(work.carry_out())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """What was asked for, read and checked."""

    options: AnswerOptions
    rows: list[StoredRow]
    suite: Suite
    key: AnswerKey
    arms: list[Arm]
    tasks: list[AnswerTask]
    conversations: ConversationStore
    wording: Wording
    rubric_name: str

    @property
    def _rubric(self) -> Rubric:
        return OWN_RUBRICS[self.rubric_name]

    @property
    def _level(self) -> str:
        return self.rows[0].report.settings.options["level"]

    async def carry_out(self) -> ExitCode:
        """Answer, and write and show the report."""
        cancel_on_signals()
        options = self.options
        spec = judge_spec(options)
        reader, judges = (
            ModelName.parse(options.reader, options.model_env),
            judge_names(spec.names, options.model_env),
        )
        async with open_session([reader, *judges], spec, options.model_env) as session:
            model = session.model(reader)
            judge = JudgeScorer(
                [session.model(name) for name in judges],
                repeat=spec.repeat,
                tie=spec.tie,
                rubric=self._rubric,
            )
            plan = self._plan(model, judge)
            folder = RunFolder(options.output, new_run_id(datetime.now(UTC), "answer", self.suite))
            total = len(plan.tasks) * len(plan.arms)
            with RecordProgress("answering", total, ArmAnswer, quiet=options.quiet) as console:
                finished = await dispatch(answer_questions(plan, folder), [console.handle])
        if not isinstance(finished, AnswersFinished):
            raise TypeError(f"answering ended with {finished}")
        if options.hypotheses is not None:
            for name, records in finished.answers.items():
                file = options.hypotheses / f"{_file_name(name)}.jsonl"
                if masked := _write_hypotheses(file, records):
                    lost = plural(masked, "answer")
                    echo(f"{file} lacks {lost} with a secret of the environment", err=True)
        show_answers(finished.report, quiet=options.quiet)
        for line in answer_lines(finished.report):
            echo(line, err=options.json_file == "-")
        echo(f"-> {finished.result}", err=options.json_file == "-")
        if options.json_file is not None:
            with json_target(options.json_file) as target:
                target.write_json(finished.report)
        return ExitCode(finished.report.exit_code)

    def _plan(self, model: Model, judge: JudgeScorer) -> AnswerPlan:
        options = self.options
        disputed = disputed_answers(self.key, options.errata)
        settings = reader_settings(options, self._level, model.settings, self.wording, model.traits)
        return AnswerPlan(
            tasks=self.tasks,
            arms=self.arms,
            key=self.key,
            conversations=self.conversations,
            reader=Reader(model, self.wording, options.method),
            judge=judge,
            settings=AnswerSettings(
                suite=self.suite,
                data_sha256=self.key.sha256,
                asked_sha256=self.rows[0].report.settings.asked(),
                disputed_sha256=None if disputed is None else digest_of_names(disputed),
                level=self._level,
                reader=settings,
                rubric=self.rubric_name,
                judge=judge.settings,
                strip_reasoning=options.strip_reasoning,
            ),
            disputed=disputed,
            benches=tuple(dict.fromkeys(row.report.run_id for row in self.rows)),
            command=tuple(part.encode("utf-8", "replace").decode() for part in sys.argv),
        )

    def show_forecast(self) -> None:
        """Print what is left to pay for reading and judging, a line an arm and a judge."""
        options = self.options
        name = ModelName.parse(options.reader, options.model_env)
        prices, cache = Prices.load(options.prices), ReplyCache()
        traits, where = prices.traits(name), address(name, options.model_env)
        forecaster = ReadingForecaster(
            name=name,
            traits=traits,
            address=where,
            wording=self.wording,
            settings=reader_settings(
                options,
                self._level,
                ModelSettings.of(name, traits, where),
                self.wording,
                traits,
            ),
            level=self._level,
            cache=cache,
        )
        reading = forecaster.forecast(self.arms, self.tasks, self.conversations)
        spec = judge_spec(options)
        judging = forecast_judging(
            judge_names(spec.names, options.model_env),
            prices,
            reading.answers,
            options.model_env,
            repeat=spec.repeat,
            cache=cache,
            rubric=self._rubric,
        )
        show_forecasts([*reading.arms, *judging], prices.as_of)
        if unknown := sum(answer is None for _, answer in reading.answers):
            echo(
                f"{unknown} of {len(reading.answers)} answers are not known yet: the judge is"
                " assumed to read 400 characters of each"
            )


def _with_files(arms: list[Arm]) -> list[Arm]:
    """Raise UsageError (`bad_option`) if the answers of two arms would be written to one file."""
    files = [_file_name(arm.name) for arm in arms]
    for arm, file in zip(arms, files, strict=True):
        if files.count(file) > 1:
            raise UsageError(
                f"the answers of two arms would be written to {file}.jsonl, one of them {arm.name}",
                code="bad_option",
                hint="give one of them at a time",
            )
    return arms


def _write_hypotheses(path: Path, records: Iterable[ArmAnswer]) -> int:
    """Write the answers of an arm; questions without one are absent.

    So are answers with a secret in them, which would be masked, and judged with the mask; returns
    their number.
    """
    masked = 0
    with replacing(path) as target:
        for record in records:
            if record.answer is not None and hides(record.answer):
                masked += 1
            elif record.answer is not None:
                row = {"question_id": record.question, "hypothesis": record.answer}
                target.write_json(row, indent=None)
    return masked


def _file_name(arm: str) -> str:
    """The name of an arm without characters that folders and shells mind."""
    return "".join(c if c.isalnum() or c in "-_.+=@" else "-" for c in arm)
