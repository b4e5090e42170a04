"""Charts as inline SVG, drawn by Vega-Lite while the report is written.

Colours are placeholders that CSS variables replace, so that a chart follows the page's theme.
vl-convert runs Vega-Lite inside the process; it fetches nothing.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from memconform.printing.escaping import printable

Value = str | int | float | None
Spec = dict[str, Any]

_INK, _MUTED, _GRID = "#010101", "#020202", "#030303"
_SERIES = [f"#0101{number:02x}" for number in range(0x10, 0x18)]
_VARIABLES = {_INK: "--ink", _MUTED: "--muted", _GRID: "--line"} | {
    colour: f"--series-{index}" for index, colour in enumerate(_SERIES)
}
_WIDTH = 460

_CONFIG: Spec = {
    "background": None,
    # The engine measures text with another font than the reader's.
    "padding": {"left": 24, "right": 16, "top": 5, "bottom": 5},
    "view": {"stroke": None},
    "font": "system-ui, sans-serif",
    "axis": {
        "labelColor": _INK,
        "titleColor": _MUTED,
        "titleFontWeight": "normal",
        "gridColor": _GRID,
        "domainColor": _MUTED,
        "tickColor": _MUTED,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "labelLimit": 240,
    },
    "legend": {"labelColor": _INK, "titleColor": _MUTED, "labelFontSize": 12, "title": None},
    "header": {"labelColor": _INK, "titleColor": _MUTED, "labelFontSize": 12},
    "range": {"category": _SERIES},
    "mark": {"color": _SERIES[0]},
    "rule": {"color": _MUTED},
    "text": {"color": _INK},
}


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing with its data as a table, which says the same to readers who see no drawing."""

    title: str
    svg: str
    columns: list[str]
    rows: list[list[str]]
    note: str = ""


def draw(
    title: str,
    spec: Spec,
    values: Sequence[Mapping[str, Value]],
    columns: Mapping[str, str],
    note: str = "",
) -> Chart:
    """Draw a chart.

    Args:
        title: what it shows, which is also the drawing's accessible name.
        spec: a Vega-Lite specification without data and configuration.
        values: the data, one mapping a mark. Texts are masked and escaped.
        columns: for the table, the field of each column by its heading.
        note: what a reader must know of it.
    """
    import vl_convert  # noqa: PLC0415 - the engine takes a second to load

    clean = [{key: _clean(value) for key, value in row.items()} for row in values]
    full = {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "data": {"values": clean},
        "config": _CONFIG,
        **spec,
    }
    svg = _themed(vl_convert.vegalite_to_svg(full), title)
    rows = [[_cell(row.get(name)) for name in columns.values()] for row in clean]
    return Chart(title, svg, list(columns), rows, note)


def _themed(svg: str, title: str) -> str:
    """Replace placeholder colours, and make one image of it for assistive technology."""
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(f'"{colour}"', f'"var({variable})"')
    svg = re.sub(r' (?:aria-[a-z]+|role)="[^"]*"', "", svg)
    # The image scales down to narrow screens, and never up.
    size = re.match(r'<svg [^>]*?width="([\d.]+)" height="([\d.]+)"', svg)
    width = size[1] if size else str(_WIDTH)
    opening = f'<svg role="img" aria-label="{escape(title)}" class="chart" data-width="{width}"'
    return svg.replace("<svg", opening, 1).replace(' class="marks"', "", 1)


def _clean(value: Value) -> Value:
    return printable(value) if isinstance(value, str) else value


def _cell(value: Value) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
