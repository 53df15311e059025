"""The page in a real browser, with jobs whose life the test tells."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from rekindle.checkpoint.store.local import LocalStore
from rekindle.common import Configuration
from rekindle.common.job_status import JobStatus
from rekindle.coordinator.job_events import JobOver
from rekindle.errors import CheckpointError
from rekindle.monitor.job_history import HistoryWriter
from rekindle.web.history_server import HistoryServer
from rekindle.web.served_jobs import RunningJob, ServedJobs
from tests.integration.page.conftest import Site, site
from tests.support.browser import PATIENCE_MS, Window, window
from tests.support.page_scenes import (
    HOSTILE,
    REPLAY,
    back_pressured_job,
    failing_job,
    finished_job,
    hostile_job,
    running_job,
)
from tests.support.recorded_jobs import FakeHandle
from tests.support.waiting import wait_until

TOKEN = "a-token-of-sixteen-letters"
SAVEPOINTS: dict[str, Any] = {"execution.checkpointing.savepoint-dir": "/tmp/shop/savepoints"}
SCENES = {
    "running": ("graph", "checkpoints/14", "slots", "epochs"),
    "failing": ("graph", "checkpoints/6", "exceptions"),
    "back-pressured": ("graph",),
    "finished": ("graph", "checkpoints"),
}
#: Figures of a task that touch each other or stick out of its box.
COLLISIONS = """[...document.querySelectorAll(".node")].flatMap((node) => {
  const range = document.createRange();
  const boxOf = (each) => { range.selectNodeContents(each); return range.getBoundingClientRect(); };
  const parts = [...node.querySelectorAll(".row span, .row b")].map((each) => [each.textContent, boxOf(each)]);
  const frame = node.getBoundingClientRect();
  const out = parts.filter(([, box]) => box.right > frame.right - 6 || box.bottom > frame.bottom - 2);
  const touch = (one, other) => one.left < other.right + 2 && other.left < one.right + 2
    && one.top < other.bottom - 1 && other.top < one.bottom - 1;
  const touching = parts.filter(([, one], index) => parts.some(([, other], at) => at > index && touch(one, other)));
  return [...out, ...touching].map(([text]) => text);
})"""
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def shop(browser: Browser) -> Iterator[Site]:
    """Four jobs that no test changes."""
    found = site()
    for name, make in zip(SCENES, (running_job, failing_job, back_pressured_job, finished_job), strict=True):
        found.add(name, make())
    yield found
    found.server.close()


@pytest.fixture
def own(browser: Browser) -> Iterator[Site]:
    """A running job of the test's own."""
    found = site()
    found.add("orders", running_job(**SAVEPOINTS))
    yield found
    found.server.close()


@pytest.fixture
def shown(browser: Browser) -> Iterator[Window]:
    with window(browser) as found:
        yield found


def ready(page: Page, tab: str = "") -> None:
    """The view is complete: nothing is still being asked for."""
    if tab:
        expect(page.locator(f"#tab-{tab.partition('/')[0]}")).to_have_attribute("aria-selected", "true")
    expect(page.locator("#panel, .cards table")).to_have_count(1)
    expect(page.get_by_text("Loading …")).to_have_count(0)
    expect(page.locator("#connection")).to_contain_text(re.compile("Live|History"))


def press(page: Page, button: str) -> None:
    page.get_by_role("group", name="Act on the job").get_by_role("button", name=button, exact=True).click()


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (1280, "light"),
        (400, "dark"),
        pytest.param(1280, "dark", marks=pytest.mark.long),
        pytest.param(400, "light", marks=pytest.mark.long),
    ],
)
def test_every_kind_of_job_can_be_looked_at(shop: Site, browser: Browser, width: int, scheme: str) -> None:
    with window(browser, width, color_scheme=scheme) as shown:
        page = shown.open(shop.server.url)
        ready(page)
        expect(page.locator("tbody tr")).to_have_count(len(SCENES))
        shown.picture(f"jobs-{scheme}-{width}")
        for name, tabs in SCENES.items():
            for tab in tabs:
                shown.open(shop.server.url, shop.path(name, tab))
                expect(page.locator("h1")).to_have_text(shop.jobs[name].plan.job_name)
                ready(page, tab)
                shown.picture(f"{name}-{tab.replace('/', '-')}-{scheme}-{width}")
                assert page.evaluate("document.documentElement.scrollWidth") <= width, "the page scrolls sideways"
                assert page.evaluate(COLLISIONS) == []
                chosen = page.locator("[role=tab][aria-selected=true]").bounding_box()
                assert chosen is not None
                assert 0 <= chosen["x"] <= width - chosen["width"], "the tab is out of view"
        assert all(address.startswith(shop.server.url) for address in shown.asked), "something comes from outside"


def test_three_clicks_lead_to_the_cause_of_a_failed_checkpoint(shop: Site, shown: Window) -> None:
    page = shown.open(shop.server.url)
    page.get_by_role("link", name="payments of the night").click()
    page.get_by_role("tab", name="Checkpoints").click()
    page.get_by_role("link", name="Checkpoint 6", exact=True).click()
    why = page.locator(".why")
    expect(why).to_contain_text(
        "Checkpoint expired before completing. The timeout is 30 s (execution.checkpointing.timeout)."
    )
    expect(why).to_contain_text("No answer came from find fraud")
    expect(why).to_contain_text("subtask 4")
    silent = page.locator(".lane.silent")
    expect(silent).to_have_count(1)
    expect(silent).to_contain_text("no answer")


def test_the_jobs_own_page_leads_there_in_one(shop: Site, shown: Window) -> None:
    page = shown.open(shop.server.url, shop.path("failing"))
    expect(page.locator(".notice").filter(has_text="Checkpoint 6 failed")).to_contain_text("expired before completing")
    page.get_by_role("link", name="See the cause").click()
    expect(page.locator(".why")).to_contain_text("Checkpoint expired before completing.")


def test_a_straggler_stands_out(shop: Site, shown: Window) -> None:
    page = shown.open(shop.server.url, shop.path("running", "checkpoints/14"))
    slow = page.locator(".lane.slow")
    expect(slow).to_have_count(1)
    expect(slow).to_contain_text("straggler")
    assert "asynchronous" in (slow.get_attribute("aria-label") or "")
    expect(page.locator(".group").filter(has=slow).locator("h4")).to_contain_text("totals per customer")


def test_an_exception_shows_the_users_traceback_first_and_the_record(shop: Site, shown: Window) -> None:
    page = shown.open(shop.server.url, shop.path("failing", "exceptions"))
    newest = page.locator("article.failure").first
    expect(newest.locator("pre.trace")).to_contain_text("Traceback (most recent call last):")
    assert newest.locator("pre.trace").inner_text().startswith("Traceback")
    expect(newest.locator(".raised")).to_contain_text("decimal.InvalidOperation")
    expect(newest.locator(".record code")).to_have_text("{'order': 4711, 'amount': '12,50,-'}")
    expect(newest.locator(".replay code")).to_have_text(REPLAY.partition(": ")[2])
    expect(newest).to_contain_text("restarts after 2.0 s")
    expect(page.locator("article.failure").last).to_contain_text("restarted after 1.0 s")
    expect(page.locator("article.failure")).to_have_count(2)


def test_the_task_that_holds_the_job_back_is_named(shop: Site, shown: Window) -> None:
    page = shown.open(shop.server.url, shop.path("back-pressured"))
    expect(page.locator(".notice")).to_contain_text("totals per customer")
    expect(page.locator(".notice")).to_contain_text("holds the job back")
    expect(page.locator(".node.slow")).to_have_count(1)
    waiting = page.locator(".node").filter(has_text="match payments")
    assert "back-pressured" in (waiting.get_attribute("aria-label") or "")
    expect(waiting.locator("b.waits")).to_be_visible()
    waiting.click()
    expect(page.get_by_role("region", name="Subtasks of match payments").locator("tbody tr")).to_have_count(4)


def test_text_of_users_stays_text(browser: Browser) -> None:
    found = site()
    hostile = found.add("hostile", hostile_job())
    try:
        with window(browser) as shown:
            page = shown.open(found.server.url)
            expect(page.get_by_text(f"orders {HOSTILE}")).to_have_count(1)
            for tab in ("graph", "checkpoints/1", "exceptions", "slots"):
                shown.open(found.server.url, found.path("hostile", tab))
                ready(page, tab)
                expect(page.locator("h1")).to_have_text(f"orders {HOSTILE}")
                if tab == "exceptions":
                    expect(page.locator(".record code")).to_have_text(HOSTILE)
                    expect(page.locator(".replay")).to_have_count(0)  # it has more than one command in it
                if tab == "slots":
                    page.locator("summary").first.click()
                    expect(page.locator("pre.log").first).to_contain_text(HOSTILE)
                assert page.locator("main img").count() == 0
                assert page.title() == f"orders {HOSTILE} · Rekindle"
            shown.expected = re.compile("TrustedHTML")
            # Where a mistake made HTML of text after all, the browser would refuse it.
            page.evaluate(
                "try { document.body.innerHTML = '<b>x</b>'; } catch (error) { window.refused = error.name; }"
            )
            assert page.evaluate("window.refused") == "TypeError"
    finally:
        hostile.end(JobStatus.FAILED)
        found.server.close()


def test_events_change_the_page_without_a_reload(own: Site, shown: Window) -> None:
    page = shown.open(own.server.url, own.path("orders"))
    ready(page)
    page.evaluate("window.still = true")
    page.locator(".node").first.focus()
    own.jobs["orders"].work(5, records=9000)
    own.jobs["orders"].shot(15, failure="Checkpoint was declined. The disk is full.")
    expect(page.locator(".notice")).to_contain_text("The disk is full.")
    own.jobs["orders"].end(JobStatus.CANCELED)
    running = own.server.jobs.running(own.jobs["orders"].job_id)
    assert running is not None
    own.server.jobs.ended(running)
    expect(page.locator(".head .state")).to_have_text("Canceled")
    expect(page.get_by_role("group", name="Act on the job")).to_have_count(0)
    assert page.evaluate("window.still"), "the page was loaded again"
    assert page.evaluate("document.activeElement.className").startswith("node"), "an update has taken the focus"


def test_buttons_ask_back_and_tell_what_became_of_it(own: Site, shown: Window) -> None:
    handle = own.handles["orders"]
    page = shown.open(own.server.url, own.path("orders"))
    ready(page)
    press(page, "Savepoint")
    expect(page.get_by_role("dialog")).to_contain_text("Make a savepoint?")
    shown.picture("dialog-savepoint")
    page.get_by_role("button", name="No, go back").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    press(page, "Stop")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert handle.asked == []

    press(page, "Savepoint")
    page.get_by_label("Directory").fill("/tmp/shop/mine")
    page.get_by_role("button", name="Make a savepoint").click()
    expect(page.locator(".notice.busy")).to_contain_text("under way")
    handle.outcome.set_result("file:///tmp/shop/mine/savepoint-1")
    expect(page.locator(".notice.good")).to_contain_text("file:///tmp/shop/mine/savepoint-1")
    assert handle.asked == [("savepoint", "/tmp/shop/mine", "CANONICAL")]

    handle.outcome = type(handle.outcome)()
    press(page, "Stop")
    page.get_by_label("Drain").check()
    page.get_by_role("button", name="Stop the job").click()
    handle.outcome.set_exception(CheckpointError("The disk is full."))
    expect(page.locator(".notice.bad")).to_contain_text("The disk is full.")
    assert handle.asked[-1] == ("stop", True, None, "CANONICAL")

    press(page, "Cancel")
    expect(page.get_by_role("dialog")).to_contain_text("Its last good checkpoint is")
    page.get_by_role("button", name="Cancel the job").click()
    expect(page.locator(".notice").filter(has_text="asked for")).to_have_count(1)
    wait_until(lambda: handle.asked[-1] == ("cancel",), "the request to cancel", PATIENCE_MS / 1000)
    own.jobs["orders"].end(JobStatus.CANCELED)
    expect(page.locator(".notice").filter(has_text="the job is canceled")).to_have_count(1)
    shown.picture("outcomes")


def test_the_keyboard_reaches_everything(shop: Site, shown: Window) -> None:
    page = shown.open(shop.server.url, shop.path("running"))
    ready(page)
    focused = "document.activeElement.textContent"
    page.keyboard.press("Tab")
    assert page.evaluate(focused) == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"
    page.keyboard.press("Tab")
    assert page.evaluate(focused) == "Savepoint"
    page.locator("[role=tab][aria-selected=true]").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Checkpoints")).to_be_focused()
    expect(page.get_by_role("tabpanel", name="Checkpoints")).to_be_visible()
    page.keyboard.press("End")
    expect(page.get_by_role("tabpanel", name="Epochs")).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Graph")).to_have_attribute("aria-selected", "true")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid", "the focus cannot be seen"
    nameless = page.locator("a:not([aria-hidden]), button").evaluate_all(
        "all => all.filter(each => !(each.getAttribute('aria-label') || each.textContent).trim()).length"
    )
    assert nameless == 0


def test_the_choice_of_colours_is_kept(shop: Site, shown: Window) -> None:
    page = shown.open(shop.server.url)
    ready(page)
    button = page.locator("#theme")
    expect(button).to_have_text("◐ Auto")
    button.click()
    expect(button).to_have_text("◐ Light")
    button.click()
    expect(button).to_have_text("◐ Dark")
    page.reload()
    ready(page)
    expect(button).to_have_text("◐ Dark")
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"


def test_a_driver_that_is_gone_is_told_and_found_again(browser: Browser) -> None:
    start = random.randrange(20_000, 30_000)  # below the ports that systems give to others
    ports: dict[str, Any] = {"rest.bind-port": f"{start}-{start + 500}"}
    first = site(**ports)
    port = first.server.port
    with window(browser) as shown:
        first.add("orders", running_job())
        page = shown.open(first.server.url, first.path("orders"))
        ready(page)
        shown.expected = re.compile("net::ERR_")  # a browser complains about each request that nobody answers
        first.server.close()
        expect(page.get_by_role("alert")).to_contain_text("The driver has not answered since")
        expect(page.locator("#connection")).to_have_text("No answer")
        expect(page.locator(".head .state")).to_have_text("Running when last seen")
        expect(page.get_by_role("group", name="Act on the job")).to_have_count(0)
        shown.picture("driver-gone")
        jobs, job = ServedJobs(), running_job()
        jobs.add(RunningJob(job.recorder, FakeHandle(job.job_id)))  # before the page can find the server without it
        again = site(jobs, **{"rest.bind-port": str(port)})
        try:
            expect(page.locator("#connection")).to_have_text("Live")
            expect(page.get_by_role("alert")).to_be_empty()
            expect(page.get_by_role("group", name="Act on the job")).to_have_count(1)
        finally:
            again.server.close()


def test_the_printed_link_opens_the_page_of_a_guarded_server(browser: Browser) -> None:
    guard: dict[str, Any] = {"rekindle.rest.token": TOKEN}
    guarded = site(**guard)
    guarded.add("orders", running_job())
    try:
        with window(browser) as shown:
            page = shown.open(guarded.server.link)
            ready(page)
            expect(page.locator("tbody tr")).to_have_count(1)
            assert TOKEN not in page.url
            assert TOKEN not in page.evaluate("document.cookie"), "a script can read the token"
    finally:
        guarded.server.close()


def test_the_history_of_a_dead_job_has_the_same_page_without_buttons(browser: Browser, tmp_path: Path) -> None:
    job = failing_job()
    HistoryWriter(job.recorder, LocalStore(tmp_path), "payments", 20).on_event(JobOver())
    with (
        HistoryServer(str(tmp_path), Configuration.from_dict({"rest.port": "0"})) as history,
        window(browser) as shown,
    ):
        page = shown.open(history.server.link)
        page.get_by_role("link", name="payments of the night").click()
        ready(page)
        expect(page.locator("#connection")).to_have_text("History")
        expect(page.locator(".head .state")).to_have_text("Driver died")
        expect(page.get_by_role("group", name="Act on the job")).to_have_count(0)
        page.get_by_role("tab", name="Exceptions").click()
        expect(page.locator("article.failure")).to_have_count(2)
        shown.picture("history")


def test_boxes_of_a_graph_never_overlap(shop: Site, shown: Window) -> None:
    page = shown.open(shop.server.url)
    numbers = random.Random(7)
    for _ in range(20):
        count = numbers.randrange(2, 12)
        ids = [f"task {each}" for each in range(count)]
        edges = [
            {"source": ids[numbers.randrange(target)], "target": ids[target]}
            for target in range(1, count)
            for _ in range(numbers.randrange(1, 3))
        ]
        overlaps = page.evaluate(
            """async ({ ids, edges, isDown }) => {
                const { layered, placed } = await import("/page/graph_layout.js");
                const size = { width: 800, box: { width: 200, height: 100 }, gap: { along: 80, across: 20 }, isDown };
                const { places } = placed(layered(ids, edges), size);
                const along = (id) => (isDown ? places.get(id).y : places.get(id).x);
                const apart = (a, b) => a.x + a.width <= b.x || b.x + b.width <= a.x
                    || a.y + a.height <= b.y || b.y + b.height <= a.y;
                const boxes = ids.map((id) => places.get(id));
                return boxes.some((a, i) => boxes.some((b, j) => i < j && !apart(a, b)))
                    || edges.some(({ source, target }) => along(source) >= along(target));
            }""",
            {"ids": ids, "edges": edges, "isDown": numbers.random() < 0.5},
        )
        assert not overlaps, edges


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("duration(250)", "250 ms"),
        ("duration(4200)", "4.2 s"),
        ("duration(200000)", "3 min 20 s"),
        ("duration(7200000)", "2 h"),
        ("duration(-1)", "–"),
        ("bytes(0)", "0 B"),
        ("bytes(999950)", "1.00 MB"),
        ("bytes(64_000_000)", "64 MB"),
        ("count(1234)", "1,234"),
        ("count(56_700)", "56.7 k"),
        ("rate(12.5)", "12.5 /s"),
        ("share(0.004)", "< 1 %"),
        ("share(0.456)", "46 %"),
        ("lag(-5)", "0 ms"),
        ("lag(null)", "–"),
        ("watermark(2 ** 63 - 1)", "end of input"),
        ("watermark(-(2 ** 63))", "none yet"),
    ],
)
def test_numbers_have_units(numbers: Page, call: str, text: str) -> None:
    name = call.partition("(")[0]
    assert numbers.evaluate(f"import('/page/format.js').then(({{ {name} }}) => {call})") == text


@pytest.fixture(scope="module")
def numbers(shop: Site, browser: Browser) -> Iterator[Page]:
    with window(browser) as found:
        yield found.open(shop.server.url)
