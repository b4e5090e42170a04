"""Draws the pictures of README.md from the published results, in Debian's Chromium.

    python scripts/screenshots.py

Needs memconform[report], Playwright and a `chromium` on PATH.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

_CHECKOUT = Path(__file__).resolve().parents[1]
_RUNS = _CHECKOUT / "results" / "published" / "runs"
_PICTURES = _CHECKOUT / "docs" / "pictures"
_PROGRAM = Path(sys.executable).with_name("memconform")
_VIEWS = {
    "report": ("/", 720),
    "report-question": ("/question?id=lme-008", 900),
}
"""By the picture's name, the view and the height in pixels."""


def main() -> int:
    browser = shutil.which("chromium")
    if browser is None:
        print("chromium is not on PATH: install Debian's package chromium")
        return 1
    _PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file = Path(folder) / "report.html"
        command: list[str | Path] = [_PROGRAM, "report", _RUNS, "-o", page_file]
        subprocess.run(command, check=True)
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for name, (view, height) in _VIEWS.items():
            context = chromium.new_context(
                viewport={"width": 1200, "height": height}, color_scheme="light"
            )
            page = context.new_page()
            page.goto(f"{page_file.as_uri()}#{view}")
            shown = view.strip("/").partition("?")[0] or "overview"
            page.wait_for_selector(f'section[data-view="{shown}"]:not([hidden])')
            page.screenshot(path=_PICTURES / f"{name}.png")
            context.close()
        chromium.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
