"""A real Chromium for tests of the page: the one on PATH, or the one that `CHROMIUM` names."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, ViewportSize, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
#: The beginning of the reason why tests are not run; the end of a run lists them.
NO_BROWSER = "no Chromium"
REASON = f"{NO_BROWSER} was found on PATH: install one (Debian: apt-get install chromium), or name it with CHROMIUM=."
#: Pictures of the page stay here, in the clone, until `make clean`.
SCREENSHOTS = Path(__file__).resolve().parents[2] / ".cache" / "screenshots"
#: A page waits this long for what a test expects: the machine may be busy.
PATIENCE_MS = 60_000
WIDTHS = {1280: 900, 400: 860}


def chromium_path() -> str | None:
    """The browser's program; None: there is none."""
    named = os.environ.get("CHROMIUM")
    return named or next((found for name in NAMES if (found := shutil.which(name))), None)


def must_be_there() -> bool:
    """Whether tests without a browser fail: in continuous integration, which sets `CI`."""
    return os.environ.get("CI", "") not in ("", "0", "false")


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """A browser without a window. Without one the test is skipped, or fails where one must be."""
    program = chromium_path()
    if program is None:
        missing = pytest.fail if must_be_there() else pytest.skip
        missing(REASON)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--disable-gpu"], timeout=2 * PATIENCE_MS)
        yield browser
        browser.close()


@dataclass
class Window:
    """A window with one page; `errors` are what its console complained about, `asked` the addresses it asked for."""

    page: Page
    context: BrowserContext
    errors: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    #: Complaints that the test itself provokes.
    expected: re.Pattern[str] | None = None

    def open(self, url: str, path: str = "") -> Page:
        """Open the page at a view."""
        self.page.goto(url + (f"#/{path}" if path else ""))
        return self.page

    def heard(self, message: ConsoleMessage) -> None:
        """Keep a complaint of the console."""
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def picture(self, name: str) -> None:
        """Keep a picture of the whole page."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True, animations="disabled")


@contextlib.contextmanager
def window(browser: Browser, width: int = 1280, **options: Any) -> Iterator[Window]:
    """A window of its own, with no cookies; its console must stay silent."""
    shape: ViewportSize = {"width": width, "height": WIDTHS.get(width, 900)}
    context = browser.new_context(viewport=shape, locale="en-GB", timezone_id="UTC", **options)
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    found = Window(page, context)
    page.on("console", found.heard)
    page.on("pageerror", lambda error: found.errors.append(str(error)))
    page.on("request", lambda request: found.asked.append(request.url))
    try:
        yield found
    finally:
        context.close()
    errors = [each for each in found.errors if not (found.expected and found.expected.search(each))]
    assert not errors, errors
