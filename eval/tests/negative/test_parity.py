"""A daemon with a planted fault parts from a good one, and at the right rung of the ladder."""

import json
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from memconform.results.records import ParityReport
from memconform.results.run_diff import DiffReport
from tests.altering import altered
from tests.conftest import CALL_SECONDS, CHECKOUT, SDKS, Ended, processes_of, runnable, shell
from tests.program import ForkServer

Run = Callable[..., Path]
Compare = Callable[..., tuple[Ended, dict[str, Any]]]

SEARCH = ("--scenario", "search-retrieve-only", "--mode", "bm25", "--top-k", "5")
BASIC = ("--scenario", "ask-basic")
PROMPTED = ("--scenario", "ask-augmented", "--upstream", "scripted")
_FEW = ("--limit", "20")
"""Twenty of a hundred questions: a run of all takes up to 20 s of a core, by night."""
QUESTIONS = pytest.mark.parametrize(
    "questions",
    [
        pytest.param(_FEW, id="some", marks=pytest.mark.exhaustive),
        pytest.param((), id="all", marks=pytest.mark.slow),
    ],
)
_PLUGINS = CHECKOUT / "eval"
"""Where the faulty daemons are found by name."""
LME = ("--dataset", "lme", "--corpus", "lme")


class _Place:
    """A folder to run in; what was run with the same flags is not run again."""

    def __init__(self, folder: Path, program: ForkServer) -> None:
        self.folder = folder
        self._program = program
        self._known: dict[tuple[object, ...], Path] = {}
        # Of a run that failed too: its folder is no other's, which would be taken for a failure.
        self._numbers = count()

    def call(self, *args: str | Path) -> Ended:
        environment = shell(_PLUGINS)
        ended = self._program.run(
            args, folder=self.folder, environment=environment, timeout=CALL_SECONDS
        )
        return Ended(ended.returncode, ended.stdout, ended.stderr, self.folder)

    def run(self, sdk: str, *args: str | Path, again: int = 0) -> Path:
        """The result of a run of the Python daemon, or of a faulty one."""
        key = (sdk, *args, again)
        if key not in self._known:
            named = sdk if sdk in SDKS else f"tests.negative.faulty:{sdk}"
            output = self.folder / f"results-{next(self._numbers)}"
            flags = ("--scorer", "exact", "--floor", "0", "--quiet", "--output", output)
            ended = self.call("run", "--sdk", named, *args, *flags)
            assert ended.code == 0, ended.err
            [self._known[key]] = (output / "runs").glob("*/result.json")
        return self._known[key]

    def known(self, sdk: str) -> list[tuple[object, ...]]:
        """What was run of an SDK so far."""
        return [key for key in self._known if key[0] == sdk]

    def parity(self, *results: Path, code: int = 0, flags: tuple[str, ...] = ()) -> dict[str, Any]:
        report = self.folder / "parity.json"
        ended = self.call("parity", *results, "--json", report, *flags)
        assert ended.code == code, ended.err
        loaded: dict[str, Any] = json.loads(report.read_text())
        jsonschema.validate(loaded, ParityReport.model_json_schema())
        return loaded

    def parted(self, faulty: str, *args: str | Path) -> dict[str, Any]:
        """The pair of a good run and a faulty one."""
        good, bad = self.run("py", *args), self.run(faulty, *args)
        report = self.folder / "parity.json"
        ended = self.call("parity", good, bad, "--json", report)
        assert ended.code in (0, 1), ended.err
        [pair] = json.loads(report.read_text())["pairs"]
        assert pair["contrast"]["verdict"] != "identical"
        loaded: dict[str, Any] = pair
        return loaded


@pytest.fixture(scope="module")
def place(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Place]:
    del cache
    folder = tmp_path_factory.mktemp("parity")
    with ForkServer(shell(_PLUGINS)) as program:
        yield _Place(folder, program)
    assert not processes_of(folder)


@pytest.fixture
def long_documents(tmp_path: Path) -> tuple[str | Path, ...]:
    """Ten documents, of which three are so long that they are cut; each answers at its end."""
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    rows = []
    for n in range(10):
        filler = f"Rain fell on harbour{n} again.\n" * (6_000 if n < 3 else 3)
        (corpus / f"{n}.md").write_text(f"{filler}\nThe secret of box{n} is word{n}x.\n")
        question = f"What is the secret of box{n}?"
        rows.append({"id": f"q{n}", "question": question, "expected_substrings": [f"word{n}x"]})
    dataset = tmp_path / "long.jsonl"
    dataset.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return ("--dataset", dataset, "--corpus", corpus)


@pytest.mark.exhaustive
def test_a_dropped_last_chunk_is_found_among_the_candidates(
    place: _Place, long_documents: tuple[str | Path, ...]
) -> None:
    pair = place.parted("DropsLastChunk", *long_documents, *SEARCH)
    assert pair["flips"] == {"candidates": 3}
    assert pair["flips_by_part"] == {"retrieval": 3}
    assert pair["contrast"]["first_only"] == 3
    assert pair["rankings"]["first_hit_later"] == 3


def test_one_chunk_too_few_is_found_among_the_candidates(place: _Place) -> None:
    pair = place.parted("OneTooFew", *LME, *SEARCH)
    assert list(pair["stages"]) == ["candidates"]
    assert pair["parted"][0]["detail"] == "4 chunks, not 5"
    assert pair["rankings"]["equal"] == 0
    assert pair["contrast"]["second_only"] == 0


@QUESTIONS
def test_other_stop_words_are_found_in_the_deltas(
    place: _Place, questions: tuple[str, ...]
) -> None:
    pair = place.parted("OtherStopWords", *LME, *BASIC, *questions)
    assert list(pair["stages"]) == ["deltas"]
    assert set(pair["flips_by_part"]) <= {"reader"}
    assert pair["rankings"]["equal"] == pair["contrast"]["compared"]


@QUESTIONS
def test_a_reader_that_ignores_dates_is_found_in_the_prompt(
    place: _Place, questions: tuple[str, ...]
) -> None:
    flags = (*LME, *PROMPTED, *questions)
    pair = place.parted("IgnoresDates", *flags)
    assert pair["stages"] == {"prompt": pair["contrast"]["compared"]}
    assert pair["parted"][0]["detail"] == "the chat model received different messages"
    assert pair["rankings"]["equal"] == pair["contrast"]["compared"]
    runs = place.run("py", *flags), place.run("IgnoresDates", *flags)
    shown = place.call("parity", "show", pair["parted"][0]["question"], *runs)
    assert shown.code == 0
    assert "first difference at prompt" in shown.out
    assert "\n-Date of the question: " in shown.out


def test_one_question_in_twenty_without_a_result_is_found_among_the_candidates(
    place: _Place,
) -> None:
    pair = place.parted("OneInTwentyEmpty", *LME, *SEARCH)
    contrast = pair["contrast"]
    assert pair["stages"] == {"candidates": 4}
    assert all(entry["detail"] == "0 chunks, not 5" for entry in pair["parted"])
    assert contrast["first_only"] == sum(entry["flipped"] for entry in pair["parted"]) > 0
    assert contrast["second_only"] == 0
    assert contrast["verdict"] == "inconclusive"
    assert contrast["settled_by"] > contrast["compared"]


def test_two_runs_of_one_daemon_are_identical(place: _Place) -> None:
    report = place.parity(place.run("py", *LME, *SEARCH), place.run("py", *LME, *SEARCH, again=1))
    [pair] = report["pairs"]
    assert (report["verdict"], pair["contrast"]["verdict"]) == ("identical", "identical")
    assert pair["stages"] == {}
    assert pair["shapes"]["equal"] == pair["shapes"]["compared"] == pair["contrast"]["compared"]
    assert [run["name"] for run in report["runs"]] == [run["run_id"] for run in report["runs"]]


def test_two_runs_of_one_sdk_are_labelled_by_letters(place: _Place) -> None:
    runs = place.run("py", *LME, *SEARCH), place.run("py", *LME, *SEARCH, again=1)
    first, second = (path.parent.name for path in runs)
    legend = f"A: py, run {first}; B: py, run {second}"
    ended = place.call("parity", *runs)
    table = ended.err.partition(legend)[0].splitlines()
    assert legend in ended.err.splitlines()
    assert any(line.split()[:3] == ["A,", "B", "identical"] for line in table)
    assert all(len(line.rstrip()) <= 80 for line in table)
    assert "A, B: identical on all" in ended.err
    markdown = place.call("parity", *runs, "--markdown", "-").out
    assert "| A, B |" in markdown
    assert markdown.count(first) == markdown.count(second) == 2, "in its heading and its legend"
    shown = place.call("parity", "show", "lme-009", *runs).out.splitlines()
    assert legend in shown
    assert any(line.split() == ["A", "B"] for line in shown)


@pytest.mark.parametrize(
    "flags",
    [
        pytest.param((*LME, *SEARCH), id="lme, searched"),
        pytest.param((*LME, *PROMPTED), id="lme, asked by way of a model", marks=pytest.mark.slow),
        pytest.param((*LME, *PROMPTED, *_FEW), id="some of lme, asked by way of a model"),
        pytest.param(
            ("--dataset", "smoke", "--seed-reference-brain", *BASIC),
            id="smoke, asked",
            marks=pytest.mark.capability("parity"),
        ),
    ],
)
def test_the_reference_daemons_are_identical(place: _Place, flags: tuple[str, ...]) -> None:
    if len(runnable()) == 1:
        pytest.skip("one SDK alone can run here")
    report = place.parity(*(place.run(sdk, *flags) for sdk in runnable()))
    assert report["verdict"] == "identical"
    for pair in report["pairs"]:
        assert pair["contrast"]["compared"] == report["questions"] >= 20
        assert pair["shapes"]["compared"] == pair["shapes"]["equal"] == report["questions"]


def _each(change: Callable[[int, dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    def changed(loaded: dict[str, Any]) -> None:
        measured = [q for q in loaded["questions"] if q["score"] is not None]
        for number, question in enumerate(measured):
            change(number, question)

    return changed


def _failed(_: int, question: dict[str, Any]) -> None:
    question |= {"passed": False, "score": 0.0, "verdict": "incorrect"}


def test_a_run_that_fails_what_the_other_passes_drifts(place: _Place, tmp_path: Path) -> None:
    good = place.run("py", *LME, *SEARCH)
    bad = altered(good, tmp_path, _each(_failed))
    report = place.parity(good, bad, code=1)
    assert report["verdict"] == "drift"
    assert report["exit_code"] == 1
    [pair] = report["pairs"]
    assert set(pair["flips_by_part"]) == {"scorer"}


def test_questions_of_one_conversation_are_not_independent(place: _Place, tmp_path: Path) -> None:
    """Twelve lost questions are drift, unless they are all about two conversations."""

    def among(clusters: int, lost: int, run: str) -> Callable[[dict[str, Any]], None]:
        def change(number: int, question: dict[str, Any]) -> None:
            question["cluster"] = f"c{number % clusters}"
            if number % clusters < lost:
                _failed(number, question)

        def changed(loaded: dict[str, Any]) -> None:
            loaded["run_id"] = run
            _each(change)(loaded)

        return changed

    good = place.run("py", *LME, *SEARCH)
    folders = [tmp_path / name for name in ("ten", "lost", "five", "other")]
    for folder in folders:
        folder.mkdir()
    ten = altered(good, folders[0], among(10, 0, "ten"))
    report = place.parity(ten, altered(good, folders[1], among(10, 2, "two lost")))
    contrast = report["pairs"][0]["contrast"]
    assert (contrast["verdict"], contrast["clusters"]) == ("inconclusive", 10)
    assert contrast["mid_p"] < 0.001
    assert contrast["sign_flip_p"] == contrast["holm_p"] == 0.5
    assert report["pairs"][0]["score_difference"]["low"] < 0
    place.parity(ten, altered(good, folders[1], among(10, 10, "lost")), code=1)
    five = altered(good, folders[2], among(5, 0, "five"))
    worse = altered(good, folders[3], among(5, 5, "all lost"))
    report = place.parity(five, worse)
    assert report["verdict"] == "inconclusive"
    assert "90 questions about these 5 clusters alone" in place.call("parity", five, worse).err
    ended = place.call("parity", good, worse)
    assert (ended.code, "the cluster of question" in ended.err) == (2, True)


def test_unmeasured_questions_are_counted_separately_and_never_as_wrong(
    place: _Place, tmp_path: Path
) -> None:
    def lost(number: int, question: dict[str, Any]) -> None:
        if number < 30:
            question |= {"passed": False, "score": None, "verdict": "timeout"}

    good = place.run("py", *LME, *SEARCH)
    report = place.parity(good, altered(good, tmp_path, _each(lost)))
    [pair] = report["pairs"]
    contrast = pair["contrast"]
    assert (contrast["first_only"], contrast["second_only"]) == (0, 0)
    assert (pair["not_measured_first"], pair["not_measured_second"]) == (0, 30)
    assert contrast["verdict"] != "identical"
    assert "30 on" in report["reasons"][0]
    bad = altered(good, tmp_path, _each(lost))
    assert place.parity(good, bad, code=5, flags=("--strict",))["exit_code"] == 5


def test_runs_without_a_common_question_agree_on_nothing(place: _Place, tmp_path: Path) -> None:
    def lost(_: int, question: dict[str, Any]) -> None:
        question |= {"passed": False, "score": None, "verdict": "timeout"}

    good = place.run("py", *LME, *SEARCH)
    bad = altered(good, tmp_path, _each(lost))
    assert "Warning" not in place.call("parity", good, bad).err
    report = place.parity(good, bad, code=4)
    assert report["verdict"] == "inconclusive"
    assert report["pairs"][0]["contrast"]["settled_by"] is None


def test_reports_another_shape(place: _Place, tmp_path: Path) -> None:
    def reshaped(_: int, question: dict[str, Any]) -> None:
        shape = [line for line in question["seen"]["shape"] if "trace.searchMs" not in line]
        question["seen"]["shape"] = [*shape, "header x-extra"]

    good = place.run("py", *LME, *SEARCH)
    bad = altered(good, tmp_path, _each(reshaped))
    [pair] = place.parity(good, bad)["pairs"]
    assert pair["shapes"]["equal"] == 0
    assert pair["shapes"]["differences"] == ["- $.trace.searchMs: number", "+ header x-extra"]


def test_documents_are_joined_by_content_not_by_path(place: _Place, tmp_path: Path) -> None:
    def moved(_: int, question: dict[str, Any]) -> None:
        for chunk in question["ranking"]:
            chunk["path"] = f"elsewhere/{chunk['path']}"

    good = place.run("py", *LME, *SEARCH)
    assert place.parity(good, altered(good, tmp_path, _each(moved)))["verdict"] == ("identical")


def test_another_order_and_another_score_are_reported_as_order(
    place: _Place, tmp_path: Path
) -> None:
    def turned(number: int, question: dict[str, Any]) -> None:
        if number == 0:
            question["ranking"].reverse()
        if number == 1:
            question["ranking"][0]["score"] += 1e-5

    good = place.run("py", *LME, *SEARCH)
    [pair] = place.parity(good, altered(good, tmp_path, _each(turned)))["pairs"]
    assert pair["stages"] == {"order": 2}
    assert "score differs by 1e-05 at rank 1" in pair["parted"][1]["detail"]


def test_rejects_runs_that_asked_different_things(place: _Place, tmp_path: Path) -> None:
    good = place.run("py", *LME, *SEARCH)
    other = place.run("py", *LME, *SEARCH[:-1], "3")
    ended = place.call("parity", good, other)
    assert (ended.code, "differ in top_k: 5 and 3" in ended.err) == (2, True)

    def other_dataset(loaded: dict[str, Any]) -> None:
        loaded["provenance"]["settings"]["dataset_sha256"] = "another"

    ended = place.call("parity", good, altered(good, tmp_path, other_dataset))
    assert (ended.code, "used different datasets" in ended.err) == (2, True)

    def dropped(loaded: dict[str, Any]) -> None:
        loaded["questions"].pop()

    ended = place.call("parity", good, altered(good, tmp_path, dropped))
    assert (ended.code, "do not contain the same questions" in ended.err) == (2, True)


def test_rejects_what_is_not_a_result(place: _Place, tmp_path: Path) -> None:
    good = place.run("py", *LME, *SEARCH)
    torn = altered(good, tmp_path, lambda _: None).rename(tmp_path / "torn.json")
    torn.write_bytes(torn.read_bytes()[:20_000])
    empty = tmp_path / "empty.json"
    empty.write_text("{}")
    for bad in (torn, empty):
        ended = place.call("parity", good, bad)
        assert (ended.code, str(bad) in ended.err) == (2, True), ended.err
    assert place.call("parity", good).code == 2
    ended = place.call("parity", good, good)
    assert (ended.code, "was given twice" in ended.err) == (2, True)
    again = place.run("py", *LME, *SEARCH, again=1)
    ended = place.call("parity", "show", "lme-00x", good, again.parent)
    assert (ended.code, "has no question 'lme-00x'" in ended.err) == (2, True)
    assert place.call("parity", good, again, "--margin", "nan").code == 2


def _diff(place: _Place, *args: str | Path, code: int = 0) -> dict[str, Any]:
    report = place.folder / "diff.json"
    ended = place.call("diff", *args, "--json", report)
    assert ended.code == code, ended.err
    loaded: dict[str, Any] = json.loads(report.read_text())
    jsonschema.validate(loaded, DiffReport.model_json_schema())
    return loaded


def test_distinguishes_regressions_and_fixes(place: _Place, tmp_path: Path) -> None:
    def changed(loaded: dict[str, Any]) -> None:
        passed = [q for q in loaded["questions"] if q["passed"]]
        failed = [q for q in loaded["questions"] if q["verdict"] == "incorrect"]
        _failed(0, passed[0])
        failed[0] |= {"passed": True, "score": 1.0, "verdict": "correct"}
        passed[1] |= {"passed": False, "score": None, "verdict": "timeout"}
        attempts = [
            {"verdict": verdict, "score": score, "latency_ms": 1.0}
            for verdict, score in (("correct", 1.0), ("incorrect", 0.0))
        ]
        passed[2] |= {"attempts": attempts, "score": 0.5}
        passed[3]["id"] = "brand-new"
        loaded["provenance"]["settings"]["dataset_sha256"] = "another"

    good = place.run("py", *LME, *SEARCH)
    bad = altered(good, tmp_path, changed)
    report = _diff(place, good, bad)
    names = ("regressions", "fixes", "not_measured", "unstable", "new", "removed")
    assert [len(report[name]) for name in names] == [1] * 6
    assert report["new"] == ["brand-new"]
    assert report["contrast"]["verdict"] != "identical"
    assert _diff(place, good, bad, "--fail-on", "regression", code=1)["exit_code"] == 1
    # The other way round the fix is the regression.
    assert _diff(place, bad, good)["regressions"] == report["fixes"]


def test_unmeasured_questions_leave_regressions_open(place: _Place, tmp_path: Path) -> None:
    def lost(number: int, question: dict[str, Any]) -> None:
        if number == 0:
            question |= {"passed": False, "score": None, "verdict": "timeout"}

    good = place.run("py", *LME, *SEARCH)
    bad = altered(good, tmp_path, _each(lost))
    for limit in ("regression", "latency:2"):
        assert _diff(place, good, bad, "--fail-on", limit, code=5)["regressions"] == []


def test_a_slower_run_fails_where_its_whole_interval_is_above(
    place: _Place, tmp_path: Path
) -> None:
    def slowed(number: int, question: dict[str, Any]) -> None:
        question["timings"]["done"] *= 1.4 + 0.2 * (number % 2)

    good = place.run("py", *LME, *SEARCH)
    slow = altered(good, tmp_path, _each(slowed))
    report = _diff(place, good, slow, "--fail-on", "latency:1.2", code=1)
    ratio = report["latency"]["done"]["ratio"]
    assert ratio["value"] == pytest.approx((1.4 * 1.6) ** 0.5)
    assert ratio["low"] < ratio["value"] < ratio["high"]
    assert _diff(place, good, slow, "--fail-on", "latency:1.5")["exit_code"] == 0
    shown = place.call("diff", good, slow).err
    assert f"latency: {ratio['value']:.2f}x the first run (95 %: " in shown
    assert _diff(place, slow, good, "--fail-on", "latency:1.2")["exit_code"] == 0
    assert place.call("diff", good, slow, "--fail-on", "latency:0").code == 2


def test_another_question_with_an_old_id_is_not_a_regression(place: _Place, tmp_path: Path) -> None:
    def reworded(loaded: dict[str, Any]) -> None:
        loaded["provenance"]["settings"]["dataset_sha256"] = "another"
        [first, *_] = [q for q in loaded["questions"] if q["passed"]]
        first |= {"question": "Who?", "passed": False, "score": 0.0, "verdict": "incorrect"}

    good = place.run("py", *LME, *SEARCH)
    report = _diff(place, good, altered(good, tmp_path, reworded), "--fail-on", "regression")
    assert (report["regressions"], report["new"]) == ([], report["removed"])
    assert len(report["new"]) == 1


def test_questions_that_moved_within_their_dataset_are_paired_by_id(
    place: _Place, tmp_path: Path
) -> None:
    """Both runs are read side by side, and only what is not paired yet is held."""

    def shuffled(loaded: dict[str, Any]) -> None:
        loaded["provenance"]["settings"]["dataset_sha256"] = "another"
        questions = loaded["questions"]
        loaded["questions"] = [*questions[30:], *reversed(questions[:30])]

    def renamed(loaded: dict[str, Any]) -> None:
        shuffled(loaded)
        loaded["questions"][0]["id"] = "new-1"
        loaded["questions"][-1]["id"] = "new-2"

    good = place.run("py", *LME, *SEARCH)
    report = _diff(place, good, altered(good, tmp_path, shuffled))
    assert report["contrast"]["verdict"] == "identical"
    assert report["contrast"]["compared"] == json.loads(good.read_text())["total"]
    report = _diff(place, good, altered(good, tmp_path, renamed))
    assert report["new"] == ["new-1", "new-2"]
    assert report["removed"] == ["lme-001", "lme-031"]
    assert report["regressions"] == report["not_measured"] == []


def test_the_same_answers_are_identical_whatever_they_took(place: _Place) -> None:
    first, again = place.run("py", *LME, *SEARCH), place.run("py", *LME, *SEARCH, again=1)
    assert _diff(place, first, again)["contrast"]["verdict"] == "identical"


def test_a_trend_has_every_run_once(place: _Place) -> None:
    first, again = place.run("py", *LME, *SEARCH), place.run("py", *LME, *SEARCH, again=1)
    ended = place.call("diff", place.folder, "--sdk", "py", "--dataset", "lme")
    assert ended.code == 0
    results = [json.loads(path.read_text()) for path in (first, again)]
    assert all(ended.out.count(f"{r['passed']}/{r['total']}") >= 2 for r in results)
    assert ended.out.split()[:3] == ["what", "started", "passed"]
    build = results[0]["daemon"]["build_hash"][:8]
    rows = [line for line in ended.out.splitlines() if build in line]
    known = {run for run in place.known("py") if "lme" in run}
    assert len(rows) == len(known)
    assert place.call("diff", place.folder, "--sdk", "nobody").code == 4


def _torn(result: Path, folder: Path, questions: int) -> Path:
    """A copy without its last `questions` questions, which ends with a whole line."""
    lines = result.read_text().splitlines(keepends=True)
    torn = folder / "torn.json"
    torn.write_text("".join(lines[: -2 - questions]))
    return torn


def test_every_command_rejects_a_file_cut_between_two_questions(
    place: _Place, tmp_path: Path
) -> None:
    good, again = place.run("py", *LME, *SEARCH), place.run("py", *LME, *SEARCH, again=1)
    torn = _torn(again, tmp_path, 10)
    for verb in ("parity", "diff"):
        ended = place.call(verb, good, torn)
        assert (ended.code, str(torn) in ended.err) == (2, True), ended.err
    ended = place.call("diff", tmp_path)
    assert (ended.code, f"{torn} is skipped" in ended.err) == (4, True)


def test_trend_reports_two_files_that_contradict_each_other(place: _Place, tmp_path: Path) -> None:
    good = place.run("py", *LME, *SEARCH)
    whole = f"{json.loads(good.read_bytes())['passed']}/"
    record, copy = tmp_path / "result.json", altered(good, tmp_path, lambda _: None)
    record.write_bytes(copy.read_bytes())
    ended = place.call("diff", tmp_path)
    assert (ended.err, ended.out.count(whole)) == ("", 1)
    altered(good, tmp_path, _each(_failed))
    ended = place.call("diff", tmp_path)
    assert f"{copy} is skipped: another file contradicts it about run" in ended.err
    assert (ended.code, ended.out.count(whole)) == (0, 1), ended.out


def test_reads_a_result_that_another_program_reformatted(place: _Place, tmp_path: Path) -> None:
    good, again = place.run("py", *LME, *SEARCH), place.run("py", *LME, *SEARCH, again=1)
    loaded, copy = json.loads(good.read_bytes()), tmp_path / "copy.json"
    # Which file it was is all that differs.
    ours = place.parity(good, again)
    ours["runs"][0]["path"] = str(copy)
    for indent in (None, 1, 2):
        for sort_keys in (False, True):
            copy.write_text(json.dumps(loaded, indent=indent, sort_keys=sort_keys))
            assert place.parity(copy, again) == ours
            assert place.call("diff", tmp_path).code == 0
    copy.write_text(json.dumps(loaded, indent=1)[:-2])
    for verb in ("parity", "diff"):
        ended = place.call(verb, copy, again)
        assert (ended.code, str(copy) in ended.err) == (2, True), ended.err


def test_trend_skips_paths_that_are_not_files(place: _Place, tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    altered(place.run("py", *LME, *SEARCH), tmp_path, lambda _: None)
    ended = place.call("diff", tmp_path)
    assert (ended.code, "folder.json is skipped" in ended.err) == (0, True), ended.err


def test_rejects_a_result_with_a_duplicate_question(place: _Place, tmp_path: Path) -> None:
    def doubled(loaded: dict[str, Any]) -> None:
        loaded["questions"][1] = loaded["questions"][0]

    good = place.run("py", *LME, *SEARCH)
    bad = altered(good, tmp_path, doubled)
    for verb in ("parity", "diff"):
        ended = place.call(verb, good, bad)
        assert (ended.code, "twice" in ended.err) == (2, True)


def test_rejects_missing_questions_on_either_side(place: _Place, tmp_path: Path) -> None:
    def left_out(number: int, question: dict[str, Any]) -> None:
        if number < 5:
            question |= {"verdict": "not_applicable", "score": None, "passed": False}

    good = place.run("py", *LME, *SEARCH)
    bad = altered(good, tmp_path, _each(left_out))
    for pair in ((good, bad), (bad, good)):
        ended = place.call("parity", *pair)
        assert (ended.code, "in some of the runs only" in ended.err) == (2, True)


def test_rejects_scores_that_are_not_numbers(place: _Place, tmp_path: Path) -> None:
    def nameless(_: int, question: dict[str, Any]) -> None:
        for chunk in question["ranking"]:
            chunk["score"] = float("nan")

    good = place.run("py", *LME, *SEARCH)
    ended = place.call("parity", good, altered(good, tmp_path, _each(nameless)))
    assert (ended.code, "result_unreadable" in ended.err) == (2, True)


def test_names_in_a_result_do_not_control_the_terminal(place: _Place, tmp_path: Path) -> None:
    def renamed(loaded: dict[str, Any]) -> None:
        loaded["sdk"] = "\x1b]0;pwn\x07[/x]"

    good = place.run("py", *LME, *SEARCH)
    bad = altered(good, tmp_path, renamed)
    name = json.loads(good.read_text())["questions"][0]["id"]
    for args in (("parity", good, bad), ("parity", "show", name, good, bad), ("diff", good, bad)):
        ended = place.call(*args)
        assert (ended.code, "\x1b" in ended.out + ended.err) == (0, False), ended.err
    other = place.run("py", *LME, *SEARCH[:-1], "3")
    assert "\x1b" not in place.call("parity", bad, other).err


def test_results_of_an_older_version_are_joined_by_path(place: _Place, tmp_path: Path) -> None:
    def older(_: int, question: dict[str, Any]) -> None:
        del question["seen"], question["first_hit"]
        for chunk in question["ranking"]:
            del chunk["content"]

    good = place.run("py", *LME, *SEARCH)
    report = place.parity(good, altered(good, tmp_path, _each(older)))
    assert report["verdict"] == "identical"
    assert report["pairs"][0]["rankings"]["first_hit_later"] == 0


def test_attempts_with_different_ends_are_unstable_and_not_a_scorer_difference(
    place: _Place, tmp_path: Path
) -> None:
    def wavering(number: int, question: dict[str, Any]) -> None:
        if number == 0:
            attempts = [(1.0, "correct"), (0.0, "incorrect"), (0.0, "incorrect")]
            question["attempts"] = [
                {"verdict": verdict, "score": score, "latency_ms": 1.0}
                for score, verdict in attempts
            ]
            _failed(0, question)
            question["score"] = 1 / 3

    good = place.run("py", *LME, *SEARCH)
    [pair] = place.parity(good, altered(good, tmp_path, _each(wavering)))["pairs"]
    assert pair["stages"] == {"attempts": 1}
    assert pair["flips_by_part"] in ({}, {"unstable": 1})


def test_shows_what_a_faulty_daemon_sent_to_its_model(place: _Place, tmp_path: Path) -> None:
    def odd(_: int, question: dict[str, Any]) -> None:
        question["seen"]["prompts"] = [{"model": "m", "messages": None}, {"messages": ["x", 1]}]

    good = place.run("py", *LME, *PROMPTED, *_FEW)
    bad = altered(good, tmp_path, _each(odd))
    [first, *_] = json.loads(good.read_text())["questions"]
    ended = place.call("parity", "show", first["id"], good, bad)
    assert (ended.code, "first difference at prompt" in ended.out) == (0, True), ended.err


def test_nine_questions_are_too_few_for_an_interval_of_latencies(
    place: _Place, tmp_path: Path
) -> None:
    def untimed(number: int, question: dict[str, Any]) -> None:
        if number >= 9:
            question["timings"] = None
        else:
            question["timings"]["done"] *= 3

    good = place.run("py", *LME, *SEARCH)
    bad = altered(good, tmp_path, _each(untimed))
    assert _diff(place, good, bad, "--fail-on", "latency:1.2", code=5)["latency"] == {}


def _refused(place: _Place, tmp_path: Path, change: Callable[[dict[str, Any]], None]) -> str:
    """What is said of a result that was changed so."""
    good = place.run("py", *LME, *SEARCH)
    ended = place.call("parity", good, altered(good, tmp_path, change))
    assert ended.code == 2, ended.err
    return ended.err


def test_rejects_a_result_that_contradicts_itself(place: _Place, tmp_path: Path) -> None:
    def set_(**changes: object) -> Callable[[dict[str, Any]], None]:
        def change(loaded: dict[str, Any]) -> None:
            [*_, last] = [q for q in loaded["questions"] if q["passed"]]
            last |= changes

        return change

    def head(**changes: object) -> Callable[[dict[str, Any]], None]:
        return lambda loaded: loaded.update(changes)

    assert "passed False contradicts correct" in _refused(place, tmp_path, set_(passed=False))
    assert "correct contradicts score None" in _refused(place, tmp_path, set_(score=None))
    assert "the text of question" in _refused(place, tmp_path, set_(question="Who?"))
    assert "result_unreadable" in _refused(place, tmp_path, set_(score=1e308))
    for header in ({"mode": "hybrid"}, {"dataset": "other"}, {"schema_version": "x@1"}):
        assert "result_unreadable" in _refused(place, tmp_path, head(**header))


def test_rejects_counts_that_do_not_match_the_questions(place: _Place, tmp_path: Path) -> None:
    good = place.run("py", *LME, *SEARCH)
    copy = altered(good, tmp_path, lambda _: None)
    text = copy.read_text()
    for begin in ('"total": ', '"passed": ', '"correct": ', '"incorrect": '):
        assert begin in text
        copy.write_text(text.replace(begin, f"{begin}9", 1))
        for verb in ("parity", "diff"):
            ended = place.call(verb, good, copy)
            assert (ended.code, str(copy) in ended.err) == (2, True), (begin, ended.err)
    copy.write_text(text.replace('"verdict": "incorrect"', '"verdict": "timeout"', 1))
    ended = place.call("diff", tmp_path)
    assert (ended.code, f"{copy} is skipped" in ended.err) == (4, True), ended.err


def test_another_end_or_another_mode_is_not_identical(place: _Place, tmp_path: Path) -> None:
    def changed(number: int, question: dict[str, Any]) -> None:
        if question["verdict"] == "incorrect":
            question["verdict"] = "abstained"
        elif number % 2:
            question["trace"]["effectiveMode"] = "semantic"

    good = place.run("py", *LME, *SEARCH)
    [pair] = place.parity(good, altered(good, tmp_path, _each(changed)))["pairs"]
    assert pair["contrast"]["verdict"] == "inconclusive"
    assert set(pair["stages"]) == {"candidates", "score"}


def test_another_selection_of_one_dataset_is_not_a_difference(place: _Place) -> None:
    few = place.run("py", *LME, *SEARCH, "--limit", "20")
    ended = place.call("diff", place.run("py", *LME, *SEARCH), few, "--fail-on", "regression")
    assert (ended.code, "differ in questions: 100 and 20" in ended.err) == (2, True)
