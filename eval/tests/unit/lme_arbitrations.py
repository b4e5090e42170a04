"""`lme arbitrate` in process, with a person's keys."""

import json
from pathlib import Path
from typing import Any

import jsonschema
from click.testing import CliRunner, Result

from memconform.cli.main import cli
from memconform.errors import ExitCode
from memconform.replay.arbitration_records import LmeArbitration
from memconform.replay.overrides import FILE_NAME
from memconform.replay.records import LmeQuestion
from tests.unit.lme_results import question

WRONG = 4


def judged_questions(number: int = 10, **fields: Any) -> list[LmeQuestion]:
    """Judged questions, of which the judge fails the first four."""
    return [
        question(f"a-{n}", "incorrect" if n < WRONG else "correct", **fields) for n in range(number)
    ]


def run_arbitrate(result: Path, *flags: str, keys: str = "") -> Result:
    """The command with a person's keys; errors are raised."""
    args = ["lme", "arbitrate", str(result), *flags]
    ended = CliRunner().invoke(cli, args, input=keys, standalone_mode=False)
    if ended.exception is not None:
        raise ended.exception
    return ended


def arbitration_of(result: Path, *flags: str, keys: str = "") -> LmeArbitration:
    target = result.with_name("report.json")
    ended = run_arbitrate(result, *flags, "--json", str(target), keys=keys)
    report = LmeArbitration.model_validate_json(target.read_bytes())
    jsonschema.validate(json.loads(target.read_bytes()), LmeArbitration.model_json_schema())
    assert ended.return_value == report.exit_code == ExitCode.OK
    return report


def stored_overrides(result: Path) -> list[dict[str, Any]]:
    lines = result.with_name(FILE_NAME).read_text().splitlines()
    return [json.loads(line) for line in lines]
