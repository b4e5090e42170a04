"""Assembles the HTML file: static parts by jinja2, questions and checks as compressed data."""

import base64
import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from memconform import __version__
from memconform.printing.escaping import printable
from memconform.reports.bench_notes import footnotes, system_tables
from memconform.reports.html.blocks import Blocks
from memconform.reports.html.conformance_data import add_conformance
from memconform.reports.html.figures import (
    GroupTally,
    bench_charts,
    group_charts,
    replay_charts,
)
from memconform.reports.html.load_figures import load_charts
from memconform.reports.html.questions import STAGES, STATUSES, GroupData
from memconform.reports.html.views import Page, build_page, group_meta
from memconform.reports.load import busy_machine, load_table
from memconform.reports.overview.groups import QuestionRow
from memconform.reports.overview.overview import Overview
from memconform.reports.wmb import score_cells
from memconform.storage.sink import Masked, Sink

_SCRIPTS = (
    "base.js",
    "blocks.js",
    "questions.js",
    "filters.js",
    "table.js",
    "differences.js",
    "question.js",
    "conformance.js",
    "main.js",
)
"""Concatenated in this order into one script."""
_STYLES = ("report.css",)


def write_html(target: Sink, overview: Overview) -> None:
    """Write the report of an overview whose questions have not been read yet.

    Raises:
        UsageError: as `Overview.read_questions`.
    """
    blocks = Blocks()
    data = [GroupData(number, group, blocks) for number, group in enumerate(overview.groups)]
    tallies = [GroupTally(group) for group in overview.groups]

    def take(number: int, row: QuestionRow) -> None:
        data[number].add(row)
        tallies[number].add(row)

    overview.read_questions(take)
    for group in data:
        group.finish()
    add_conformance(overview, blocks)
    blocks.add(
        "meta",
        {
            "statuses": STATUSES,
            "stages": STAGES,
            "groups": [group_meta(group) for group in overview.groups],
        },
    )
    page = build_page(overview)
    charts = {
        "groups": [group_charts(tally) for tally in tallies],
        "benches": bench_charts(overview),
        "replays": replay_charts(overview),
        "loads": [load_charts(report) for report in overview.loads],
    }
    for piece in _render(page, charts, blocks):
        # Texts are masked one by one: in finished HTML, a mask could replace a tag or a digest.
        target.write_masked(Masked(piece.encode("utf-8")))


def _render(page: Page, charts: dict[str, Any], blocks: Blocks) -> Iterator[str]:
    script, style = _asset("\n".join(map(_read, _SCRIPTS))), _asset("\n".join(map(_read, _STYLES)))
    environment = Environment(
        loader=PackageLoader("memconform.reports.html", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.globals |= {"svg": Markup, "wmb_cells": score_cells}
    environment.globals |= {"load_table": load_table, "busy_machine": busy_machine}
    environment.globals |= {"bench_notes": footnotes, "system_tables": system_tables}
    template = environment.get_template("report.html.j2")
    return template.generate(
        page=page,
        charts=charts,
        blocks=((name, Markup(data)) for name, data in blocks),  # noqa: S704 - base64
        script=Markup(script),  # noqa: S704 - the project's own
        style=Markup(style),  # noqa: S704 - the project's own
        policy=Markup(_policy(script, style)),  # noqa: S704 - digests
        version=__version__,
        written=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )


def _shown(value: object) -> object:
    """Mask and escape every text that a template shows, before HTML escaping."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return printable(value)
    return "" if value is None else value


def _read(name: str) -> str:
    return resources.files(__package__).joinpath("assets", name).read_text("utf-8")


def _asset(text: str) -> str:
    """A script's or style's text as it stands inside its element, which the digest covers."""
    if "</" in text:
        raise ValueError("an asset could end its own element")
    return f"\n{text}\n"


def _policy(script: str, style: str) -> str:
    """The page's Content-Security-Policy: nothing but its own script and style, no request."""
    digests = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (script, style)
    ]
    return (
        f"default-src 'none'; script-src 'sha256-{digests[0]}'; style-src 'sha256-{digests[1]}';"
        " base-uri 'none'; form-action 'none'"
    )
