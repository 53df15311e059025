"""The page of a real job on Spark: it is seen to run, makes a savepoint and is cancelled, all by mouse."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from rekindle.common import Types
from rekindle.common.job_status import JobStatus
from rekindle.datastream import SourceFunction
from tests.support.browser import PATIENCE_MS, chromium, window
from tests.support.environments import checkpointed

DEADLINE_S = 100


class Numbers(SourceFunction):
    """Emits numbers until it is cancelled."""

    def __init__(self) -> None:
        self._runs = True

    def run(self, ctx: Any) -> None:
        number = 0
        while self._runs:
            ctx.collect(number)
            number += 1
            time.sleep(0.005)  # the pace of the outside world, not a wait for something

    def cancel(self) -> None:
        self._runs = False


@pytest.fixture
def client(spark: Any, tmp_path: Path) -> Iterator[Any]:
    places: dict[str, Any] = {"execution.checkpointing.savepoint-dir": f"{tmp_path}/savepoints", "rest.port": "0"}
    env = checkpointed(1, 500, directory=tmp_path / "checkpoints", **places)
    numbers = env.add_source(Numbers(), type_info=Types.LONG()).name("numbers")
    numbers.key_by(lambda n: n % 7).map(lambda n: n).name("count").filter(lambda n: False).print()
    found = env.execute_async("seen in a browser")
    yield found
    if not found.get_job_status().result(DEADLINE_S).is_globally_terminal_state():
        found.cancel().result(DEADLINE_S)


@pytest.mark.timeout(240)
def test_a_job_is_seen_to_run_and_is_driven_with_buttons(client: Any, tmp_path: Path) -> None:
    expect.set_options(timeout=PATIENCE_MS)
    with chromium() as browser, window(browser) as shown:
        page = shown.open(client.get_web_interface_url(), f"jobs/{client.get_job_id()}")
        expect(page.locator(".head .state")).to_have_text("Running")
        expect(page.locator(".node")).to_have_count(2)
        expect(page.locator(".edge text").first).to_have_text(re.compile(r"[1-9][\d.,]* /s"))
        expect(page.get_by_role("link", name="Spark’s page")).to_have_attribute("href", re.compile("^http"))
        shown.picture("real-job")

        page.get_by_role("button", name="Savepoint", exact=True).click()
        page.get_by_role("button", name="Make a savepoint").click()
        told = page.locator(".notice.good")
        expect(told).to_contain_text("The savepoint is at")
        made = list((tmp_path / "savepoints").glob("*/_metadata"))
        assert len(made) == 1
        assert made[0].parent.name in told.inner_text()

        page.get_by_role("button", name="Cancel", exact=True).click()
        page.get_by_role("button", name="Cancel the job").click()
        expect(page.locator(".head .state")).to_have_text("Canceled")
        expect(page.locator(".notice").filter(has_text="the job is canceled")).to_have_count(1)
    assert client.get_job_status().result(DEADLINE_S) is JobStatus.CANCELED
