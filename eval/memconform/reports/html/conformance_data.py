"""Data of the conformance view: rules, and what each SDK's checks came to."""

from collections.abc import Iterable
from typing import Any

from memconform.conformance.results import ConformReport, Result
from memconform.conformance.rules import rules
from memconform.reports.conformance import shortened
from memconform.reports.html.blocks import Blocks
from memconform.reports.overview.overview import Overview
from memconform.reports.overview.regressions import conformance_changes

_LONGEST = 4_000
"""Characters shown of a line: some name bodies of megabytes."""

RESULTS = [result.value for result in Result]


def add_conformance(overview: Overview, blocks: Blocks) -> None:
    """Write the block `conformance`, if there is a report."""
    if not overview.conformance:
        return
    regressed = {c.sdk: set(c.regressed) for c in conformance_changes(overview)}
    sdks = [
        {
            "name": sdk.sdk,
            "reference": report.sdk_references.get(sdk.sdk, sdk.sdk),
            "checks": list(_checks(report, number, regressed.get(sdk.sdk, set()))),
            "problems": sdk.problems,
            "stale": sdk.stale_known,
        }
        for report in overview.conformance
        for number, sdk in enumerate(report.sdks)
    ]
    names = {
        rule
        for report in overview.conformance
        for sdk in report.sdks
        for case in sdk.cases
        for check in case.checks
        for rule in check.rules
    }
    known = rules()
    listed = [
        {
            "id": rule.id,
            "level": rule.level,
            "profile": rule.profile.value if rule.profile else "every daemon",
            "text": rule.text,
        }
        for rule in known.values()
    ]
    # A report of another version may name rules that this contract does not have.
    listed += [
        {"id": name, "level": "", "profile": "", "text": "This version's contract lacks the rule."}
        for name in sorted(names - known.keys())
    ]
    blocks.add("conformance", {"rules": listed, "sdks": sdks, "results": RESULTS})


def _checks(report: ConformReport, number: int, regressed: set[str]) -> Iterable[dict[str, Any]]:
    for case in report.sdks[number].cases:
        for check in case.checks:
            row: dict[str, Any] = {
                "id": check.id,
                "result": RESULTS.index(check.result.value),
                "rules": check.rules,
            }
            if check.result is not Result.PASS:
                row |= {
                    "title": case.title,
                    "expected": check.expected,
                    "got": [line[:_LONGEST] for line in check.got],
                    "step": check.step,
                    "curl": shortened(check.curl),
                    "known": check.known,
                    "causes": [cause.cause for cause in check.causes],
                }
            if check.id in regressed:
                row["regressed"] = True
            yield row
