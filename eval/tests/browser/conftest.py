"""Debian's Chromium, driven by Playwright, and what the tests need from npm."""

import fcntl
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from memconform.reports.html.document import write_html
from memconform.reports.overview.overview import Overview
from memconform.storage.sink import replacing
from tests.conftest import REQUIRE_ALL

_FOLDER = Path(__file__).parent
_WAIT_SECONDS = 60
PACKAGES = _FOLDER / "node_modules"


def _require(program: str) -> str:
    found = shutil.which(program)
    if found is None and not REQUIRE_ALL:
        pytest.skip(f"{program} is not on PATH")
    assert found is not None, f"{program} is not on PATH"
    return found


@pytest.fixture(scope="session")
def packages() -> Path:
    """The packages of package-lock.json, installed by one of the processes that run tests."""
    npm = _require("npm")
    with (_FOLDER / ".installing").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        installed = PACKAGES / ".package-lock.json"
        wanted = _FOLDER / "package-lock.json"
        if not installed.exists() or installed.stat().st_mtime < wanted.stat().st_mtime:
            command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
            subprocess.run(command, cwd=_FOLDER, check=True, capture_output=True, timeout=300)
            installed.touch()
    return PACKAGES


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium without a window, for one file: as long as Playwright is open, its event loop counts
    as running in this thread, and no asynchronous test can run."""
    executable = _require("chromium")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=executable,
            # A container's root has no user namespaces for the sandbox; the pages are our own.
            args=["--no-sandbox"],
        )
        yield chromium
        chromium.close()


@dataclass
class Tab:
    """A page, with everything that it must not do."""

    page: Page
    base: str
    problems: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def go(self, fragment: str) -> None:
        """Show a view, and wait until it is drawn."""
        self.page.goto(f"{self.base}#{fragment}")
        view = fragment.strip("/").partition("?")[0] or "overview"
        self.page.wait_for_selector(f'section[data-view="{view}"]:not([hidden])')
        if view == "questions":
            self.page.wait_for_selector("#match-count:not(:empty)")
        if view == "question":
            self.page.wait_for_selector("#question-page > *")

    def wait(self, expression: str) -> None:
        """Wait until a JavaScript expression is true.

        Playwright's own function evaluates it in the page, which the page's policy forbids.
        """
        deadline = time.monotonic() + _WAIT_SECONDS
        while not self.page.evaluate(expression):
            assert time.monotonic() < deadline, f"never true: {expression}"
            self.page.wait_for_timeout(20)

    def texts(self, selector: str) -> list[str]:
        return self.page.locator(selector).all_inner_texts()


Open = Callable[..., Tab]


@pytest.fixture
def open_report(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """Write the report of some results and open it; afterwards it has done nothing forbidden."""
    tabs: list[Tab] = []

    def opened(
        results: Sequence[Path],
        baselines: Sequence[Path] = (),
        *,
        width: int = 1200,
        scheme: Literal["light", "dark"] = "light",
    ) -> Tab:
        file = tmp_path / f"report-{len(tabs)}.html"
        named = [str(path) for path in results], [str(path) for path in baselines]
        with Overview.load(*named, tmp_path) as overview, replacing(file) as target:
            write_html(target, overview)
        context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
        tab = Tab(context.new_page(), file.as_uri())
        tab.page.on("console", lambda message: tab.problems.append(message.text))
        tab.page.on("pageerror", lambda error: tab.problems.append(str(error)))
        tab.page.on("dialog", lambda dialog: tab.problems.append(dialog.message))
        tab.page.on("request", lambda request: tab.requests.append(request.url))
        tabs.append(tab)
        return tab

    yield opened
    for tab in tabs:
        tab.page.context.close()
        assert tab.problems == []
        assert {url.partition("#")[0] for url in tab.requests} <= {tab.base}


def violations(tab: Tab, packages: Path) -> list[str]:
    """Serious violations of accessibility that axe-core finds in the view that is shown."""
    # Evaluated by the debugger, which the page's policy does not limit.
    tab.page.evaluate((packages / "axe-core" / "axe.min.js").read_text(encoding="utf-8"))
    found: dict[str, Any] = tab.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{v['id']} ({v['impact']}): {v['nodes'][0]['target']} {v['nodes'][0]['failureSummary']}"
        for v in found["violations"]
        if v["impact"] in ("serious", "critical")
    ]
