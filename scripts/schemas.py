"""Generates the schemas of the contract and of conformance cases from their models."""

import json
from pathlib import Path

import yaml

from memconform.conformance.case_schema import case_schema
from memconform.contract.schemas import events_schema, openapi

_SDKS = Path(__file__).parents[1] / "sdks"


def rendered() -> dict[Path, str]:
    """Render each file."""
    head = "# Made by scripts/schemas.py from eval/memconform/contract; do not edit.\n"
    shapes = yaml.safe_dump(openapi(), sort_keys=False, allow_unicode=True, width=100)
    return {
        _SDKS / "openapi.yaml": head + shapes,
        _SDKS / "events.schema.json": json.dumps(events_schema(), indent=2) + "\n",
        _SDKS / "cases.schema.json": json.dumps(case_schema(), indent=2) + "\n",
    }


if __name__ == "__main__":
    for path, text in rendered().items():
        path.write_text(text, encoding="utf-8")
        print(path.name)
