"""Random programs detect defects that no case covers: each plant is found and becomes a case."""

import asyncio
import secrets
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest

from memconform.conformance import strict_yaml
from memconform.conformance.case import DaemonSettings
from memconform.conformance.case_runner import run_case
from memconform.conformance.catalog import CaseVariant, brain_id, catalog
from memconform.conformance.fixture import Fixture
from memconform.conformance.mutation.mutant_runner import MutantRunner
from memconform.conformance.mutation.mutation import Mutation
from memconform.conformance.results import CaseResult, Result
from memconform.daemons.manifest import load_manifest
from memconform.daemons.manifest_runner import ManifestRunner
from memconform.daemons.sdk_runner import SdkRunner
from memconform.fuzzing.case_file import case_file
from memconform.fuzzing.configuration_probe import probe
from memconform.fuzzing.counterexample_search import Disagreement
from memconform.fuzzing.judges import OracleJudge
from memconform.fuzzing.session import find_disagreement, serve_sdks
from tests.conftest import CHECKOUT

_EXAMPLES = 2_000
_SEED = 1
_MAX_CALLS = 4
"""Most calls of the minimal program."""


@dataclass(frozen=True)
class Plant:
    id: str
    breaks: str
    mutation: Mutation
    open: bool
    """Whether the contract permits it, so that only another daemon tells."""


def _plants() -> list[Plant]:
    raw = strict_yaml.load_yaml(Path(__file__).with_name("plants.yaml"))
    return [
        Plant(
            row["id"],
            row["breaks"],
            Mutation.model_validate({"source": row["source"]}),
            row.get("open", False),
        )
        for row in raw
    ]


PLANTS = _plants()

_QUICK = 1
"""How many plants every test run searches for; each takes about ten seconds."""


def _plain() -> ManifestRunner:
    folder = CHECKOUT / "sdks" / "py"
    return ManifestRunner(load_manifest(folder / "sdk.toml"), folder)


def _planted(plant: Plant) -> MutantRunner:
    runner = MutantRunner(_plain(), plant.mutation)
    runner.name = "planted"
    return runner


async def _search(runners: list[ManifestRunner], folder: Path) -> Disagreement | None:
    for runner in runners:
        await runner.build(lambda _: None)
    async with serve_sdks(runners, folder) as addresses:
        result = await asyncio.to_thread(
            find_disagreement,
            addresses,
            set(runners[0].profiles),
            examples=_EXAMPLES,
            seed_value=_SEED,
            tried=lambda: None,
            stop=threading.Event(),
        )
    return result.disagreement


async def _search_alone(runner: ManifestRunner, folder: Path) -> Disagreement | None:
    await runner.build(lambda _: None)
    async with serve_sdks([runner], folder) as targets:
        providers = await asyncio.to_thread(probe, runner, targets[runner.name])
        result = await asyncio.to_thread(
            find_disagreement,
            targets,
            set(runner.profiles),
            examples=_EXAMPLES,
            seed_value=_SEED,
            tried=lambda: None,
            stop=threading.Event(),
            judge=OracleJudge({runner.name: providers}),
        )
    return result.disagreement


async def _result(entry: CaseVariant, runner: SdkRunner, folder: Path) -> CaseResult:
    async with Fixture(runner, DaemonSettings(), folder, f"fuzz-{secrets.token_hex(4)}") as fixture:
        await fixture.prepare()
        return (await run_case(entry, fixture, brain_id(entry))).result


def _failing(case: CaseResult) -> list[str]:
    return [f"{c.id} {c.got}" for c in case.checks if c.result is not Result.PASS]


def test_each_plant_has_one_change_and_a_unique_id() -> None:
    assert len({plant.id for plant in PLANTS}) == len(PLANTS) >= 15
    assert all(len(plant.mutation.source) == 1 for plant in PLANTS)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "plant",
    [
        pytest.param(plant, id=plant.id, marks=[pytest.mark.slow] if number >= _QUICK else [])
        for number, plant in enumerate(PLANTS)
    ],
)
async def test_a_plant_is_found_and_becomes_a_case(
    plant: Plant, cache: Path, tmp_path: Path
) -> None:
    del cache
    disagreement = await _search([_plain(), _planted(plant)], tmp_path / "search")
    await _require_case(disagreement, plant, tmp_path)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "plant",
    [
        pytest.param(plant, id=plant.id, marks=[pytest.mark.slow] if number >= _QUICK else [])
        for number, plant in enumerate(each for each in PLANTS if not each.open)
    ],
)
async def test_the_oracle_finds_a_plant_without_another_daemon(
    plant: Plant, cache: Path, tmp_path: Path
) -> None:
    del cache
    disagreement = await _search_alone(_planted(plant), tmp_path / "search")
    await _require_case(disagreement, plant, tmp_path)
    assert disagreement is not None
    assert disagreement.difference.rule


async def _require_case(disagreement: Disagreement | None, plant: Plant, tmp_path: Path) -> None:
    """Require a small case that the plain daemon passes and the planted one fails."""
    assert disagreement is not None, f"{_EXAMPLES} examples did not find that {plant.breaks}"
    assert disagreement.steady
    assert len(disagreement.program.calls) <= _MAX_CALLS

    name, text = case_file(disagreement)
    cases = tmp_path / "cases"
    cases.mkdir()
    (cases / f"{name}.yaml").write_text(text, encoding="utf-8")
    [entry] = catalog(cases)
    plain = await _result(entry, _plain(), tmp_path / "plain")
    assert not _failing(plain), text
    planted = await _result(entry, _planted(plant), tmp_path / "planted")
    assert [c for c in planted.checks if c.result is Result.FAIL], text
