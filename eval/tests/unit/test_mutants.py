"""The table of mutants, the derived mutants, and how a score is computed. No daemon runs."""

import re
from collections import Counter
from pathlib import Path
from typing import Literal

import pytest

from memconform.conformance.catalog import CaseVariant, catalog
from memconform.conformance.mutation.derived import derived_mutants
from memconform.conformance.mutation.mutant import Mutant
from memconform.conformance.mutation.mutants import check_mutants, mutants, read_table
from memconform.conformance.mutation.results import (
    FalseAlarm,
    Fate,
    MutantResult,
    by_profile,
    mutation_exit_code,
)
from memconform.conformance.mutation.score import (
    MutantProgress,
    applicable_cases,
    detecting_check,
    is_applicable,
    quick_groups,
)
from memconform.conformance.results import CaseResult, Check, Result
from memconform.conformance.rules import rules
from memconform.contract.schemas import ROUTES
from memconform.contract.wire import Profile
from memconform.daemons.manifest import load_manifest
from memconform.daemons.manifest_runner import ManifestRunner
from memconform.daemons.url_runner import UrlRunner
from memconform.errors import ExitCode, UsageError
from memconform.fakes.mutant import MutantRunner, mutant_of
from memconform.fakes.mutation import Edit, Mutation, SourceEdit, apply_edits

CHECKOUT = Path(__file__).parents[3]
SOURCES = CHECKOUT / "sdks" / "py" / "src"

FROM_SOURCE = [mutant for mutant in mutants() if mutant.mutation.source]


def test_every_rule_has_a_mutant() -> None:
    assert {mutant.rule for mutant in mutants()} == set(rules())


def test_every_profile_has_mutants_and_the_total_is_in_the_hundreds() -> None:
    count = Counter(mutant.profile_name for mutant in mutants())
    assert set(count) == {*(profile.value for profile in Profile), "robustness"}
    assert min(count.values()) >= 20
    assert sum(count.values()) >= 120


@pytest.mark.parametrize("mutant", FROM_SOURCE, ids=lambda mutant: mutant.id)
def test_source_mutations_match_once_and_compile(mutant: Mutant) -> None:
    texts: dict[str, str] = {}
    for edit in mutant.mutation.source:
        text = texts.get(edit.file) or (SOURCES / edit.file).read_text(encoding="utf-8")
        assert text.count(edit.find) == 1, f"{edit.file} has not once: {edit.find}"
        texts[edit.file] = text.replace(edit.find, edit.put)
        assert texts[edit.file] != text
    for file, text in texts.items():
        compile(text, file, "exec")


def test_each_mutant_breaks_something() -> None:
    nothing = Mutation().model_fields_set | {"when"}
    for mutant in mutants():
        assert mutant.mutation.model_fields_set - nothing, mutant.id


def test_every_key_of_every_answer_is_broken() -> None:
    ids = {mutant.id for mutant in derived_mutants()}
    for route in ROUTES:
        for name, info in (route.answer.model_fields if route.answer else {}).items():
            key = info.alias or name
            assert {f"{route.name}-{key}-{how}" for how in ("missing", "retyped", "renamed")} <= ids


def test_null_does_not_break_an_optional_key() -> None:
    ids = {mutant.id for mutant in derived_mutants()}
    assert "brain-documents-null" in ids
    assert "brain-description-null" not in ids


@pytest.mark.parametrize(
    ("edit", "becomes"),
    [
        (Edit(at="/a", op="rename", set="b"), {"b": 1, "c": ["x"]}),
        (Edit(at="/a", op="retype"), {"a": "1", "c": ["x"]}),
        (Edit(at="/c", op="retype"), {"a": 1, "c": {"value": ["x"]}}),
        (Edit(at="/c/*", op="retype"), {"a": 1, "c": [{"value": "x"}]}),
        (Edit(at="/d", op="retype"), {"a": 1, "c": ["x"]}),
        (Edit(at="/d", op="rename", set="e"), {"a": 1, "c": ["x"]}),
        (Edit(at="/a", set=None), {"a": None, "c": ["x"]}),
    ],
)
def test_an_edit_changes_only_existing_keys(edit: Edit, becomes: object) -> None:
    assert apply_edits({"a": 1, "c": ["x"]}, [edit]) == becomes


def _mutant(level: str = "must") -> Mutant:
    return next(mutant for mutant in mutants() if mutant.level == level)


def _case(*results: Result) -> CaseResult:
    checks = [
        Check(id=f"x#{n}", result=result, level="must", rules=["wire.json"])
        for n, result in enumerate(results)
    ]
    return CaseResult(case="x", title="x", checks=checks)


@pytest.mark.parametrize(
    ("level", "result", "detected"),
    [
        ("must", Result.FAIL, True),
        ("must", Result.WARN, False),
        ("must", Result.UNTESTABLE, False),
        ("must", Result.ERROR, False),
        ("should", Result.WARN, True),
        ("should", Result.PASS, False),
    ],
)
def test_only_a_failing_check_kills(level: str, result: Result, detected: bool) -> None:  # noqa: FBT001 - a parameter of the test
    assert (detecting_check(_mutant(level), _case(Result.PASS, result)) is not None) is detected


def test_a_check_mutant_is_detected_by_its_own_check_only() -> None:
    mutant = next(m for m in check_mutants() if m.check == "health#says")
    checks = [
        Check(id=id_, result=Result.FAIL, level="must", rules=["wire.json"])
        for id_ in ("health#other", "health#says")
    ]
    assert detecting_check(mutant, CaseResult(case="health", title="x", checks=checks[:1])) is None
    check = detecting_check(mutant, CaseResult(case="health", title="x", checks=checks))
    assert check is not None
    assert check.id == "health#says"
    assert [entry.id for entry in catalog() if mutant.concerns(entry)] == ["health"]


def test_an_unknown_check_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text('- {check: "health#no-such", when: {target: x}}\n')
    with pytest.raises(UsageError, match="mutant health#no-such: no case has this check"):
        read_table(tmp_path)


def _result(fate: Fate, level: Literal["must", "should"] = "must") -> MutantResult:
    return MutantResult(
        id="m", rule="wire.json", level=level, profile="core", breaks="x", fate=fate, cases=1,
        took_s=0,
    )  # fmt: skip


def test_a_surviving_mutant_of_a_should_does_not_fail_the_run() -> None:
    assert (
        mutation_exit_code([_result(Fate.SURVIVED, "should"), _result(Fate.KILLED)], [])
        is ExitCode.OK
    )
    assert mutation_exit_code([_result(Fate.SURVIVED)], []) is ExitCode.FAILED


def test_an_untestable_mutant_does_not_count_as_killed() -> None:
    results = [_result(Fate.UNTESTABLE), _result(Fate.KILLED)]
    assert mutation_exit_code(results, []) is ExitCode.DAEMON
    assert mutation_exit_code([_result(Fate.UNTESTABLE, "should")], []) is ExitCode.DAEMON
    assert by_profile(results)["core"].killed == 1


def test_a_false_alarm_fails_the_score() -> None:
    alarm = FalseAlarm(check="x#y", result="fail", got=[])
    assert mutation_exit_code([_result(Fate.KILLED)], [alarm]) is ExitCode.FAILED


def test_a_lost_unmodified_daemon_is_not_a_low_score() -> None:
    lost = FalseAlarm(check="x#y", result="untestable", got=["it did not start"])
    assert mutation_exit_code([_result(Fate.SURVIVED)], [lost]) is ExitCode.DAEMON
    assert MutantProgress(_mutant()).result().fate is Fate.UNTESTABLE


def test_quick_groups_begin_with_one_variant_of_each_case() -> None:
    citing = [entry for entry in catalog() if "core.brain.id" in entry.case.rules]
    first = quick_groups(citing)[0]
    bases = [entry.base for entry in first]
    assert len(set(bases[: len(set(bases))])) == len(set(bases))
    assert not any(entry.is_disruptive for group in quick_groups(catalog()) for entry in group)


def test_quick_groups_contain_every_quick_case() -> None:
    quick = [e for e in catalog() if not (e.is_disruptive or e.case.concurrent)]
    grouped: list[CaseVariant] = [entry for group in quick_groups(catalog()) for entry in group]
    assert sorted(e.id for e in grouped) == sorted(e.id for e in quick)


def _runner(name: str) -> ManifestRunner:
    folder = CHECKOUT / "sdks" / name
    return ManifestRunner(load_manifest(folder / "sdk.toml"), folder)


def test_source_mutants_apply_to_py_only() -> None:
    assert is_applicable(FROM_SOURCE[0], _runner("py"), catalog())
    assert not is_applicable(FROM_SOURCE[0], _runner("go"), catalog())


def test_a_running_daemon_gets_only_mutants_of_exchanges() -> None:
    url = UrlRunner("http://127.0.0.1:1")
    entries = applicable_cases(catalog(), url)
    applicable = [mutant for mutant in mutants() if is_applicable(mutant, url, entries)]
    assert applicable
    assert all(mutant.mutation.is_of_exchanges for mutant in applicable)
    with pytest.raises(UsageError, match="a daemon that the harness starts"):
        mutant_of(url, FROM_SOURCE[0].mutation)


def test_a_mutant_has_the_build_hash_of_the_unmodified_daemon() -> None:
    good = _runner("py")
    patched = MutantRunner(good, Mutation(source=[SourceEdit(file="a/b.py", find="x", put="y")]))
    assert patched.build_hash() == good.build_hash()
    assert MutantRunner(good, Mutation()).build_hash() == good.build_hash()


def test_ids_are_plain_ascii() -> None:
    assert all(
        re.fullmatch(r"[A-Za-z0-9_.,*\[\]-]+", mutant.id)
        for mutant in (*mutants(), *check_mutants())
    )
