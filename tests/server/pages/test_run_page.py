"""The page of a run in a real browser: what its head says, its first tab, and one selection for all tabs."""

from __future__ import annotations

from pathlib import Path

from tests.readers.journals.journals import Monitor, Trainer
from tests.server.browser import Browser, keep_picture
from tests.server.pages.test_page import browser, live_run, now_ms, page, static  # noqa: F401
from tests.server.pages.test_page_charts import click
from tests.server.test_build import hook  # noqa: F401

TAB = "nav[aria-label='Views of this run'] a[aria-current=page]"


def spiking(folder: Path) -> int:
    """600 s of a training that logs each 2 s; its loss spikes at the steps 150 to 159. Returns its start."""
    start_ms = now_ms() - 600_000
    monitor, trainer = Monitor(folder, start_ms=start_ms), Trainer(folder, start_ms=start_ms)
    monitor.info(start_ms, config={"max_steps": 1000})
    for second in range(600):
        monitor.sample(start_ms + second * 1000, {"gpu.0.gpu": 90.0, "gpu.0.powerWatts": 300.0, "cpu": 20.0})
        if second % 2 == 0:
            step = second // 2
            loss = 18.0 if 150 <= step < 160 else 0.2
            trainer.log(start_ms + second * 1000, step, **{"train/loss": loss, "epoch": step / 100})
    monitor.end(start_ms + 600_000, exit_code=0)
    return start_ms


def selected_times(page: Browser) -> list[float]:  # noqa: F811
    query = "new URLSearchParams(location.search)"
    return [float(page.evaluate(f"{query}.get('{name}')")) for name in ("from", "to")]


def test_the_head_says_how_it_is_going_and_charts_come_first(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    spiking(tmp_path)
    Monitor(tmp_path, "quiet", start_ms=now_ms() - 5000).sample(now_ms(), {"cpu": 5.0})

    page.open("/runs/abc")
    assert page.text(TAB) == "Charts"
    head = page.text("dl[aria-label='How it is going'][aria-busy=false]").replace("\n", " ")
    assert "train/loss 0.2 best 0.2 at step" in head
    assert "step 299 of 1,000 (30%)" in head
    assert "0.5 steps/s" in head
    assert "GPU 90% idle 0%" in head

    page.open("/runs/quiet")
    page.wait(f"document.querySelector(\"{TAB}\")?.innerText === 'System'")


def test_a_selected_part_is_the_same_in_all_tabs(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    start_ms = spiking(tmp_path)

    page.open("/runs/abc/charts?charts=loss")
    left, top, width, height = page.box("figure .u-over")
    page.mouse("mousePressed", left + width * 0.5, top + height / 2, 1)
    page.mouse("mouseMoved", left + width * 0.55, top + height / 2, 1)
    page.mouse("mouseReleased", left + width * 0.55, top + height / 2, 1)
    page.wait("new URLSearchParams(location.search).has('steps')")
    first, last = map(float, page.evaluate("new URLSearchParams(location.search).get('steps')").split("~"))
    assert 140 < first < 160 < last < 175
    times = selected_times(page)
    assert abs((times[0] - start_ms) / 2000 - first) < 0.01

    page.evaluate("[...document.querySelectorAll(\"nav[aria-label='Views of this run'] a\")][1].click()")
    page.wait("location.pathname === '/runs/abc/system'")
    assert selected_times(page) == times
    assert "shown · show all" in page.text(".tools .zoomed")

    page.open(f"/runs/abc/charts?charts=loss&from={start_ms + 300_000}&to={start_ms + 320_000}")
    assert "10 steps shown" in page.text(".tools .zoomed")
    page.evaluate("document.querySelector('.tools .zoomed').click()")
    page.wait("location.search === '?charts=loss'")


def point_at(page: Browser, selector: str, share: float) -> None:  # noqa: F811
    left, top, width, height = page.box(selector)
    page.mouse("mouseMoved", left + width * share, top + height / 2)


def test_a_step_chart_says_where_a_training_was_resumed(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    start_ms = now_ms() - 700_000
    monitor, trainer = Monitor(tmp_path, start_ms=start_ms), Trainer(tmp_path, start_ms=start_ms)
    for row, step in enumerate([*range(400), *range(200, 400)]):
        monitor.sample(start_ms + row * 1000, {"gpu.0.gpu": 90.0, "gpu.0.powerWatts": 300.0, "cpu": 20.0})
        trainer.log(start_ms + row * 1000, step, **{"train/loss": 3.0 - step / 200 + (row >= 400) / 2})
    monitor.end(start_ms + 600_000, exit_code=0)

    page.open("/runs/abc/charts?charts=loss")
    page.wait("document.querySelector('figure .u-over')")
    point_at(page, "figure .u-over", 200 / 399)
    page.wait("document.querySelector('figure .where').innerText.includes('at step 200, back from 399')")
    keep_picture(page, "resumed-by-step")

    page.open("/runs/abc/charts?charts=loss&x=elapsed")
    page.wait("document.querySelector('figure .u-over')")
    point_at(page, "figure .u-over", 400 / 600)
    page.wait("document.querySelector('figure .where').innerText.includes('at step 200, back from 399')")
    keep_picture(page, "resumed-by-time")


LINES = "[aria-label=Output] .line"


def printing(folder: Path) -> int:
    """600 s of a training that prints more than the page loads, with errors at 60 s and 500 s; its start."""
    start_ms = now_ms() - 600_000
    monitor, trainer = Monitor(folder, start_ms=start_ms), Trainer(folder, start_ms=start_ms)
    for second in range(600):
        at = start_ms + second * 1000
        monitor.sample(at, {"cpu": 20.0})
        trainer.log(at, second, loss=1.0)
        for part in range(8):
            trainer.printed(at, f"step {second}.{part} loss 1.0 {'.' * 100}\n")
        if second in (60, 500):
            trainer.printed(at, f"2026-11-29 ERROR disk {second}\n", stream=2)
    monitor.end(start_ms + 600_000, exit_code=0)
    return start_ms


def test_errors_of_a_long_log_are_a_click_away(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    printing(tmp_path)
    page.open("/runs/abc/logs")
    page.wait(f"document.querySelectorAll('{LINES}').length > 1000")
    click(page, "Previous error")
    page.wait("document.querySelector('.line.at')?.innerText.includes('ERROR disk 500')")
    assert page.text(".tools .soft[role=status]") == "error 2 of 2"
    click(page, "Previous error")
    page.wait("document.querySelector('.line.at')?.innerText.includes('ERROR disk 60')")
    assert "The output around 1:00 is shown" in page.text("main")
    keep_picture(page, "log-error")
    click(page, "Next error")
    page.wait("document.querySelector('.line.at')?.innerText.includes('ERROR disk 500')")


def test_a_search_of_a_log_shows_lines_around_matches(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    start_ms = printing(tmp_path)
    page.open("/runs/abc/logs?q=step 7.")
    page.wait("document.querySelectorAll('[aria-label=Matches] .match').length === 8")
    assert "8 of 8 matches" in page.text("main")
    assert "step 6.7" in page.text("[aria-label=Matches]")
    click(page, "Next match")
    page.wait("[...document.querySelectorAll('[role=status]')].some(e => e.innerText === '1 of 8 matches')")
    keep_picture(page, "log-search")
    assert page.text("[aria-label=Matches] .at mark") == "step 7."
    # Which charts a line leads to is known a moment later than the lines.
    page.wait("document.querySelector('[aria-label=Matches] .match a').pathname === '/runs/abc/charts'")
    page.evaluate("document.querySelector('[aria-label=Matches] .match a').click()")
    page.wait("location.pathname === '/runs/abc/charts'")
    first, last = selected_times(page)
    assert first <= start_ms + 7000 <= last

    page.open("/runs/abc/logs?q=^step 5[0-9].3&regex=1&context=0")
    page.wait("document.querySelectorAll('[aria-label=Matches] .match').length === 10")
    page.open("/runs/abc/logs?q=(&regex=1")
    page.wait("document.querySelector('[role=alert]')?.innerText.includes('no valid regular expression')")


def test_a_selected_time_leads_to_the_log_at_that_time(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    start_ms = printing(tmp_path)
    page.open(f"/runs/abc/charts?from={start_ms + 30_000}&to={start_ms + 32_000}")
    click(page, "Logs of this time")
    page.wait("document.querySelector('.line.chosen')?.innerText.includes('step 30.0')")
    box = page.box("[aria-label=Output]")
    assert box[1] <= page.box(".line.chosen")[1] <= box[1] + box[3]


def test_the_hardware_is_under_all_charts_for_one_request(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    spiking(tmp_path)
    requests = (
        "performance.getEntriesByType('resource').filter(e => e.name.includes('/overlay/system')).length"
    )
    page.open("/runs/abc/charts")
    page.wait("document.querySelectorAll('figure .u-over').length === 2")
    assert page.evaluate(requests) == 0
    click(page, "GPU under charts")
    page.wait("document.querySelectorAll('figure ul[aria-label^=Hardware] path[d^=M]').length === 4")
    assert page.evaluate(requests) == 1
    point_at(page, "figure .u-over", 0.5)
    page.wait("document.querySelector('figure ul[aria-label^=Hardware]').innerText.includes('90%')")
    assert "300 W" in page.text("figure ul[aria-label^=Hardware]")
    keep_picture(page, "strip")

    page.open("/runs/abc/charts?open=train/loss")
    page.wait("document.querySelectorAll('dialog ul[aria-label^=Hardware] path[d^=M]').length === 2")
    plot, strip = page.box("dialog .u-over"), page.box("dialog ul[aria-label^=Hardware] svg")
    assert abs(plot[0] - strip[0]) < 1
    assert abs(plot[2] - strip[2]) < 1
    keep_picture(page, "strip-large")
    page.open("/runs/abc/charts?x=elapsed")
    page.wait("document.querySelectorAll('figure ul[aria-label^=Hardware] path[d^=M]').length === 4")
    click(page, "GPU under charts")
    page.wait("!document.querySelector('figure ul[aria-label^=Hardware]')")


def test_shift_and_the_pointer_move_the_shown_part(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    spiking(tmp_path)
    page.open("/runs/abc/charts?charts=loss&steps=100~200")
    page.wait("document.querySelector('.tools .zoomed')")
    left, top, width, height = page.box("figure .u-over")
    y = top + height / 2
    page.mouse("mouseMoved", left + width * 0.8, y, shift=True)
    page.mouse("mousePressed", left + width * 0.8, y, 1, shift=True)
    page.mouse("mouseMoved", left + width * 0.5, y, 1, shift=True)
    page.mouse("mouseReleased", left + width * 0.3, y, 1, shift=True)
    steps = "new URLSearchParams(location.search).get('steps')"
    page.wait(f"{steps} !== '100~200'")
    first, last = map(float, page.evaluate(steps).split("~"))
    assert abs(first - 150) < 2
    assert abs(last - 250) < 2


def test_values_that_are_not_finite_are_counted_and_marked(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    start_ms = now_ms() - 60_000
    trainer = Trainer(tmp_path, start_ms=start_ms)
    for step in range(50):
        finite = step < 20 or step >= 30
        trainer.log(start_ms + step * 1000, step, loss=1.0 + step / 50 if finite else float("nan"))
    page.open("/runs/abc/charts?y=linear")
    page.wait("document.querySelector('figure .where')?.innerText.includes('40 of 50 finite')")
    # A cross below the plot of the ten values, where the line itself has a gap, and none elsewhere.
    inked = """(() => {
        const [c, o] = ['canvas', '.u-over'].map(name => document.querySelector(`figure ${name}`));
        const [b, u, r] = [c.getBoundingClientRect(), o.getBoundingClientRect(), c.width / c.clientWidth];
        const [w, h] = [Math.floor(u.width * r), Math.floor(8 * r)];
        const [x, y] = [(u.left - b.left) * r, (u.bottom - b.top - 9) * r];
        const d = c.getContext('2d').getImageData(x, y, w, h).data;
        const isBlue = i => d[i + 3] > 120 && d[i + 2] - d[i] > 60;
        return [[21, 28], [32, 48]].map(([from, to]) => {
            let n = 0;
            for (let y = 0; y < h; y++) for (let x = Math.floor(w * from / 49); x < w * to / 49; x++)
                n += isBlue(4 * (y * w + x));
            return n;
        });
    })()"""
    marked, others = page.evaluate(inked)
    assert marked > 20
    assert others == 0


def test_what_comes_while_a_page_is_open_moves_no_chart(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    training = live_run(tmp_path, 50, interval_s=30.0)
    page.open("/runs/abc/charts")
    page.wait("document.querySelectorAll('figure').length >= 2")
    page.wait("document.querySelector('[aria-label=Findings]')")
    titles = page.evaluate("[...document.querySelectorAll('figure h3')].map(e => e.innerText)")
    place = page.box("figure")
    start_ms = training.now_ms
    other = Trainer(tmp_path, pid=4999, start_ms=start_ms, rank=1)
    other.log(start_ms, 50, **{"a first name": 1.0})
    other.log(start_ms + 1000, 51, **{"a first name": 2.0})
    training.monitor.event(start_ms, "alert", level="warning", title="the disk is nearly full")
    training.advance(3)
    page.wait("document.querySelector('.urgent')?.innerText.includes('the disk is nearly full')")
    page.wait(f"document.querySelectorAll('figure').length > {len(titles)}")
    newer = page.evaluate("[...document.querySelectorAll('figure h3')].map(e => e.innerText)")
    assert newer[: len(titles)] == titles
    training.end("failed", exit_code=3)
    page.wait("document.querySelector('.badge.failed')")
    assert page.box("figure")[1] == place[1]
    click(page, "Show why")
    page.wait("document.querySelector('[aria-label=\"Why it failed\"]')?.innerText.includes('3')")
    page.open("/runs/abc/charts")
    page.wait("document.querySelector('[aria-label=\"Why it failed\"]')")
    assert "Show why" not in page.text("main")
