"""The page in a real browser: it draws, follows, zooms and complains of nothing."""

from __future__ import annotations

import fcntl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from runvitals.server.http.page import FOLDER
from runvitals.server.http.serve import Server
from runvitals.server.local_app import create_app
from tests.patience import PATIENCE_S, eventually
from tests.readers.journals.journals import Monitor, Training
from tests.server.browser import Browser
from tests.server.page_port import listen_for_page
from tests.server.test_build import hook  # noqa: F401

EVIL = '<img src=x onerror="document.title=1">'


@pytest.fixture(scope="module")
def browser(shared_browser: Browser) -> Browser:
    """A browser in which no other module left anything."""
    shared_browser.renew()
    return shared_browser


@pytest.fixture(scope="module")
def static(hook: ModuleType) -> str:  # noqa: F811
    """The built page, built now if the sources changed, by one of the processes that run tests."""
    root = Path(__file__).parents[3]
    with open(root / "hatch_build.py") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        hook.build(root)
    return FOLDER


@pytest.fixture
def page(browser: Browser, tmp_path: Path, static: str) -> Iterator[Browser]:
    """The browser, at a server over `tmp_path`. In the end the page must have complained of nothing."""
    listener = listen_for_page()
    server = Server(create_app(str(tmp_path), static=static))
    with listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        browser.base = f"http://127.0.0.1:{listener.getsockname()[1]}"
        browser.complaints.clear()
        browser.resize(1280, 900)
        yield browser
        browser.leave()
        server.handle_exit(2, None)
        thread.join(timeout=PATIENCE_S)
    assert browser.complaints == []


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def live_run(directory: Path, samples: int = 120, interval_s: float = 1.0, **how: object) -> Training:
    """A run that has been running for a while, up to now.

    Args:
        interval_s: between two samples. The run counts as lost after ten seconds without one, or after five
            intervals. Where it must be running, let them be longer than a busy machine takes.
    """
    start_ms = now_ms() - int(samples * interval_s * 1000)
    training = Training(directory, start_ms=start_ms, interval_s=interval_s, **how)  # type: ignore[arg-type]
    training.advance(samples)
    return training


def type_into(page: Browser, selector: str, text: str) -> None:
    page.evaluate(f"document.querySelector('{selector}').focus()")
    page.call("Input.insertText", text=text)


def drawn_pixels(page: Browser, title: str) -> int:
    """How many pixels of a chart's canvas are not empty."""
    count = page.evaluate(
        f"""(() => {{
            const canvas = document.querySelector('figure[aria-label^="{title}"] canvas');
            if (!canvas || !canvas.width) return 0;
            const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
            let count = 0;
            for (let i = 3; i < data.length; i += 4) if (data[i] > 0) count++;
            return count;
        }})()"""
    )
    return int(count)


WHERE = "document.querySelectorAll('.where')"
SELECTED = "document.querySelector('.u-select')"
DRAWN = "new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))"


def x_labels(page: Browser) -> str:
    """The time under the crosshair, put in the middle of the first chart: again, as a person would, where one
    of the charts is drawn anew just then, which takes the crosshair away.
    """
    for _ in range(50):
        left, top, width, height = page.box("figure .u-over")
        page.mouse("mouseMoved", left + width / 2, top + height / 2)
        page.mouse("mouseMoved", left + width / 2 + 1, top + height / 2)
        shown = page.evaluate("[...document.querySelectorAll('figure .where')].map(e => e.innerText)")
        if shown and not any(text.endswith("a point") for text in shown):
            return str(shown[0])
        time.sleep(0.1)
    return page.text("figure .where")


def test_the_runs_list_is_live(page: Browser, tmp_path: Path) -> None:
    training = Training(tmp_path, "old", name="the old one", tags=("baseline",))
    training.advance(5)
    training.end("crashed", signal=9, out_of_memory=True)
    page.open("/runs")
    assert "crashed" in page.text("tbody tr")
    assert "the old one" in page.text("tbody tr")

    Monitor(tmp_path, "new", start_ms=now_ms()).sample(now_ms(), {"cpu": 42.0})
    page.wait("document.querySelectorAll('tbody tr').length == 2")
    row = page.text("tbody tr")
    assert "new" in row
    assert "running" in row
    assert "42%" in row

    type_into(page, "input[type=search]", "baseline old")
    page.wait("document.querySelectorAll('tbody tr').length == 1")
    assert page.evaluate("location.search") == "?q=baseline+old"
    page.evaluate("[...document.querySelectorAll('.states button')][3].click()")
    page.wait("location.search == '?q=baseline+old+state%3Acrashed'")
    page.evaluate("document.querySelector('tbody a').click()")
    assert page.text("h1") == "the old one"
    assert "SIGKILL, out of memory" in page.text(".head")
    buttons = page.evaluate("[...document.querySelectorAll('.head button')].map(e => e.innerText)")
    assert not any(text.startswith("Stop") for text in buttons)  # it has ended


def test_charts_are_drawn_and_follow_the_run(page: Browser, tmp_path: Path) -> None:
    training = live_run(tmp_path, gpus=1)
    page.open("/runs/abc/system")
    page.wait("document.querySelectorAll('figure canvas').length >= 4")
    page.wait("document.querySelector('.link.open')?.innerText == 'live'")
    assert drawn_pixels(page, "GPU utilization") > 2000
    assert {"GPU", "CPU"} <= set(
        page.evaluate("[...document.querySelectorAll('section h2')].map(e => e.innerText)")
    )

    values = training._values() | {"gpu.0.temp": 123.0}
    training.monitor.sample(now_ms(), values)
    page.wait(
        """document.querySelector('figure[aria-label^="GPU temperature"]')?.innerText.includes('123 °C')"""
    )
    page.wait("document.querySelector('.quiet') === null")

    training.end("failed", exit_code=3)
    page.wait("document.querySelector('.head').innerText.includes('exit code 3')")


def test_a_series_that_begins_later_gets_its_chart(page: Browser, tmp_path: Path) -> None:
    monitor = Monitor(tmp_path, start_ms=now_ms())
    page.open("/runs/abc/system")
    page.wait("document.querySelector('main')?.innerText.includes('No samples yet')")
    monitor.sample(now_ms(), {"cpu": 7.0, "disk.in": 0.0})
    page.wait("""document.querySelector('figure[aria-label^="CPU"]')?.innerText.includes('7%')""")
    monitor.sample(now_ms(), {"cpu": 8.0, "disk.in": 5.0})
    page.wait("""document.querySelector('figure[aria-label="Disk I/O, MiB/s"]')""")


def test_zoom_and_crosshair_are_shared(page: Browser, tmp_path: Path) -> None:
    live_run(tmp_path, 1000)
    page.open("/runs/abc/system")
    page.wait("document.querySelectorAll('figure canvas').length >= 3")
    page.wait("document.querySelector('.where')?.innerText.endsWith('a point')")  # buckets of the whole run
    middle = x_labels(page)
    assert middle.startswith("8:")
    page.wait(f"(shown => shown.length >= 3 && shown.every(e => e.innerText === {middle!r}))([...{WHERE}])")

    left, top, width, height = page.box("figure .u-over")
    y = top + height / 2

    def selected() -> bool:
        """Begin to drag. A chart that is drawn anew just then ends that: again, as a person would."""
        page.mouse("mouseReleased", left + width * 0.2, y, clicks=1)
        page.mouse("mouseMoved", left + width * 0.2, y)
        page.mouse("mousePressed", left + width * 0.2, y, clicks=1)
        for share in (0.22, 0.25, 0.3):
            page.mouse("mouseMoved", left + width * share, y, clicks=1)
        return bool(page.evaluate(f"{DRAWN}.then(() => parseFloat({SELECTED}?.style.width) > 20)"))

    eventually(selected)
    page.mouse("mouseReleased", left + width * 0.3, y, clicks=1)
    assert "shown" in page.text(".zoomed")
    # 200 s to 300 s: the middle is at 250 s, of every chart, once it is drawn anew.
    eventually(lambda: x_labels(page).startswith("4:"))
    page.wait(f"[...{WHERE}].every(e => e.innerText.startsWith('4:'))")
    page.mouse("mouseMoved", 5, 5)
    page.wait("!document.querySelector('.where')")  # 100 s at full resolution: samples, no buckets

    page.mouse("mousePressed", left + width / 2, y, clicks=1)
    page.mouse("mouseReleased", left + width / 2, y, clicks=1)
    page.mouse("mousePressed", left + width / 2, y, clicks=2)
    page.mouse("mouseReleased", left + width / 2, y, clicks=2)
    page.wait("!document.querySelector('.zoomed')")
    eventually(lambda: x_labels(page) == middle)


def test_a_host_is_selected(page: Browser, tmp_path: Path) -> None:
    for host in ("node1", "node2"):
        monitor = Monitor(tmp_path, host=host, start_ms=now_ms())
        monitor.sample(now_ms(), {"cpu": 5.0})
    page.open("/runs/abc/system?host=node2")
    page.wait("""document.querySelector('figure[aria-label^="CPU"]')?.innerText.includes('cpu')""")
    assert "node1" not in page.text("figure")
    page.evaluate(
        "(select => { select.value = ''; select.dispatchEvent(new Event('change', {bubbles: true})); })"
        "(document.querySelector('select'))"
    )
    page.wait("document.querySelector('figure')?.innerText.includes('node1')")


def test_keys_move_the_crosshair_and_zoom(page: Browser, tmp_path: Path) -> None:
    live_run(tmp_path, 100)
    page.open("/runs/abc/system")
    page.wait("document.querySelectorAll('figure canvas').length >= 3")  # each is drawn in a task of its own
    page.wait("document.querySelector('.plot canvas')")
    page.evaluate("document.querySelector('.plot').focus()")
    page.press("ArrowLeft")
    page.wait("document.querySelector('.where')?.innerText.startsWith('1:')")
    page.wait("document.querySelectorAll('.where').length >= 3")
    page.wait(f"new Set([...{WHERE}].map(e => e.innerText)).size === 1")
    page.press("+")
    page.wait("document.querySelector('.zoomed')")
    page.press("Escape")
    page.wait("!document.querySelector('.zoomed')")


def test_logged_values_are_drawn_by_step(page: Browser, tmp_path: Path) -> None:
    training = live_run(tmp_path, 50)
    page.open("/runs/abc/charts")
    page.wait("document.querySelectorAll('figure canvas').length == 2")
    page.wait("document.querySelector('main').innerText.includes('1 constant metric: lr.')")
    assert "rank 0" in page.text('figure[aria-label="loss"]')
    training.trainer.log(now_ms(), 50, loss=77.0, accuracy=0.5, lr=0.1, brand_new=1.0)
    page.wait("document.querySelector('figure[aria-label=\"loss\"]').innerText.includes('77')")
    page.wait("document.querySelector('figure[aria-label=\"brand_new\"]')")
    page.wait("document.querySelector('figure[aria-label=\"lr\"]')")  # it is no longer constant


def test_many_logged_names_are_filtered_and_drawn_in_view_only(page: Browser, tmp_path: Path) -> None:
    training = live_run(tmp_path, 1)
    training.trainer.log(now_ms(), 1, **{f"layer.{number}": float(number) for number in range(250)})
    page.open("/runs/abc/charts")
    page.wait("document.querySelectorAll('.place').length == 200")
    page.wait("document.querySelectorAll('figure canvas').length > 3")
    assert page.evaluate("document.querySelectorAll('figure canvas').length") < 60
    assert "53 more charts." in page.text(".more")
    page.evaluate("document.querySelector('.more .link').click()")
    page.wait("document.querySelectorAll('.place').length == 253")
    page.open("/runs/abc/charts?charts=LAYER.249")
    page.wait("document.querySelectorAll('figure canvas').length == 1")
    assert "249" in page.text('figure[aria-label="layer.249"]')


def test_missing_sources_and_pages_are_reported(page: Browser, tmp_path: Path) -> None:
    training = live_run(tmp_path, 5)
    reason = "fanSpeed, memoryTemp: not supported (GPU 1); gpu.3: lost (GPU-5)"
    training.monitor.info(now_ms(), sources={"nvidia": {"state": "on", "reason": reason}})
    page.open("/runs/abc/system")
    page.wait("document.querySelector('section[aria-label=\"Not measured\"] button')")
    page.evaluate("document.querySelector('section[aria-label=\"Not measured\"] button').click()")
    assert "/sys/class/powercap has no readable RAPL domain" in page.text(
        'section[aria-label="Not measured"]'
    )
    parts = page.evaluate("[...document.querySelectorAll('.reason span')].map(each => each.innerText)")
    assert {"fanSpeed, memoryTemp: not supported (GPU 1)", "gpu.3: lost (GPU-5)"} <= set(parts)
    page.open("/runs/nope")
    assert "no run 'nope'" in page.text("[role=alert]")
    page.open("/what/is/this")
    assert page.text("h1") == "Page not found"
    refused = [text for text in page.complaints if "404 (Not Found)" in text]
    assert len(refused) == len(page.complaints)
    page.complaints.clear()


@pytest.mark.parametrize("view", ["", "/system", "/charts", "/overview", "/logs"])
def test_users_text_is_not_interpreted_as_html(page: Browser, tmp_path: Path, view: str) -> None:
    training = live_run(tmp_path, 5, name=EVIL, project=EVIL, host="node1", tags=(EVIL,))
    training.trainer.info(now_ms(), config={EVIL: EVIL}, summary={EVIL: EVIL}, run={"notes": EVIL})
    training.trainer.log(now_ms(), 9, **{EVIL: 1.0})
    training.monitor.event(now_ms(), EVIL, "error", EVIL)
    training.monitor.printed(now_ms(), EVIL)
    training.monitor.sample(now_ms(), {EVIL: 5.0})
    page.open(f"/runs/abc{view}")
    assert EVIL in page.text("h1")
    page.wait("document.querySelector('main').innerText.split('onerror').length > 3")
    assert page.evaluate("document.querySelectorAll('main img').length") == 0
    page.open("/runs")
    assert EVIL in page.text("tbody tr")
    assert page.evaluate("document.querySelectorAll('main img').length") == 0


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize(
    "view",
    [
        "/",
        "/runs",
        "/hosts",
        "/hosts/node1",
        "/compare?runs=abc",
        "/runs/abc",
        "/runs/abc/charts",
        "/runs/abc/overview",
        "/runs/abc/logs",
    ],
)
def test_nothing_is_wider_than_a_phone(page: Browser, tmp_path: Path, view: str, dark: bool) -> None:
    training = live_run(tmp_path, 30, gpus=2, name="a-name-without-any-place-to-break-it-" * 3)
    training.monitor.printed(now_ms(), "x" * 300)
    page.resize(400, 800, dark)
    page.open(view)
    page.wait("document.querySelector('main')?.innerText.length > 100")
    page.wait("document.readyState == 'complete'")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(14, 17, 22)") == dark


def test_colours_can_be_changed(page: Browser, tmp_path: Path) -> None:
    page.open("/")
    button = "document.querySelector('header button[aria-label^=Colours]')"
    page.wait(button)
    seen = set()
    for _ in range(3):
        page.evaluate(f"{button}.click()")
        seen.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(seen) == 2
    assert page.evaluate("localStorage.getItem('runvitals.theme')") == "system"
