"""Charts in a real browser: options, the state in the address, devices, keys, and what changed in a time."""

from __future__ import annotations

import gzip
import json
import math
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.patience import PATIENCE_S
from tests.readers.journals.journals import Monitor, Trainer
from tests.server.browser import Browser, keep_picture
from tests.server.pages.accessibility import accessible
from tests.server.pages.test_page import (  # noqa: F401
    EVIL,
    browser,
    drawn_pixels,
    live_run,
    now_ms,
    page,
    static,
    type_into,
)
from tests.server.test_build import hook  # noqa: F401

ESC = "\x1b"


def click(page: Browser, text: str, within: str = "body") -> None:  # noqa: F811
    """Click the button or link with this text, once there is one."""
    page.wait(
        f"(found => found && (found.click(), true))([...document.querySelector({json.dumps(within)})"
        f"?.querySelectorAll('button, a') ?? []].find(e => e.innerText.trim() === {json.dumps(text)}))"
    )


def choose(page: Browser, label: str, value: str) -> None:  # noqa: F811
    """Choose in a select field by its label."""
    page.wait(
        f"(select => select && [...select.options].some(e => e.value === {json.dumps(value)}) && "
        f"(select.value = {json.dumps(value)}, "
        "select.dispatchEvent(new Event('change', {bubbles: true})), true))"
        f"([...document.querySelectorAll('select')].find(e => (e.labels[0]?.innerText ?? e.ariaLabel) === "
        f"{json.dumps(label)}))"
    )


def parameters(page: Browser) -> dict[str, str]:  # noqa: F811
    query: dict[str, str] = page.evaluate("Object.fromEntries(new URLSearchParams(location.search))")
    return query


def drag(page: Browser, selector: str, start: float, end: float) -> None:  # noqa: F811
    """Drag over a chart, from a share of its width to another."""
    left, top, width, height = page.box(selector)
    y = top + height / 2
    page.mouse("mouseMoved", left + width * start, y)
    page.mouse("mousePressed", left + width * start, y, clicks=1)
    for share in (0.3, 0.6, 1.0):
        page.mouse("mouseMoved", left + width * (start + (end - start) * share), y, clicks=1)
    page.mouse("mouseReleased", left + width * end, y, clicks=1)


def fleet(directory: Path, gpus: int = 16, seconds: int = 60) -> int:
    """A run with many devices, of which number 13 does little; when it began."""
    begin = now_ms() - seconds * 1000
    monitor = Monitor(directory, start_ms=begin)
    for i in range(seconds):
        values = {f"gpu.{g}.gpu": (20.0 if g == 13 else 90.0) + math.sin(i + g) for g in range(gpus)}
        monitor.sample(begin + i * 1000, values)
    return begin


def disturbed(directory: Path) -> int:
    """A run whose power drops and whose step time doubles from 300 s to 360 s; when it began."""
    begin = now_ms() - 600_000
    monitor, trainer = Monitor(directory, start_ms=begin), Trainer(directory, start_ms=begin)
    for i in range(600):
        slow = 300 <= i < 360
        noise = math.sin(i * 7.3)
        power = (250.0 if slow else 600.0) + 5 * noise
        monitor.sample(begin + i * 1000, {"gpu.0.powerWatts": power, "cpu": 50.0 + 10 * noise})
        trainer.log(begin + i * 1000, i, step_time=(0.4 if slow else 0.2) + 0.001 * noise)
    monitor.event(begin + 300_000, "alert", "warning", "the power fell", title="slow steps")
    monitor.printed(begin + 10_000, "the beginning\n")
    monitor.printed(begin + 330_000, f"{ESC}[1;31mslow{ESC}[0m step 330\n")
    return begin


def test_the_address_has_the_whole_view_and_back_undoes_it(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    begin = disturbed(tmp_path)
    page.open("/runs/abc/system")
    page.wait("document.querySelectorAll('figure canvas').length >= 2")
    drag(page, "figure .u-over", 0.4, 0.7)
    page.wait("document.querySelector('.zoomed')")
    assert begin + 200_000 < int(parameters(page)["from"]) < begin + 300_000
    click(page, "Options and export")
    choose(page, "y axis", "log")
    choose(page, "Smoothing", "gaussian")
    page.wait("location.search.includes('smooth=gaussian')")
    page.press("Escape")
    type_into(page, "input[type=search]", "power")
    page.wait("document.querySelectorAll('figure').length === 1")
    address = page.evaluate("location.pathname + location.search")

    page.open("/runs")
    page.wait("document.querySelector('tbody')")
    page.open(address)
    page.wait("document.querySelectorAll('figure canvas').length === 1")
    assert "shown" in page.text(".zoomed")
    assert drawn_pixels(page, "GPU power") > 500
    click(page, "Options and export")
    page.wait("[...document.querySelectorAll('select')].some(e => e.value === 'gaussian')")
    page.press("Escape")

    click(page, "GPU power", "figure")
    page.wait("document.querySelector('dialog[open] table')")
    assert parameters(page)["open"] == "GPU power\nW"
    page.evaluate("history.back()")
    page.wait("!document.querySelector('dialog[open]')")
    page.evaluate("history.forward()")
    page.wait("document.querySelector('dialog[open] figure canvas')")
    page.press("Escape")
    page.wait("!location.search.includes('open=')")


def test_the_code_of_the_first_view_is_small(static: str) -> None:  # noqa: F811
    index = Path(static, "index.html").read_text()
    loaded = re.findall(r'(?:src|href)="\./(assets/[^"]+)"', index)
    assert len(loaded) >= 2
    assert sum(len(gzip.compress(Path(static, name).read_bytes())) for name in loaded) <= 150_000


@pytest.mark.parametrize("options", ["y=log", "y=linear&outliers=aside"])
def test_the_first_drawing_fits_the_values(page: Browser, tmp_path: Path, options: str) -> None:  # noqa: F811
    live_run(tmp_path, 300).end()
    page.open(f"/runs/abc/charts?charts=accuracy&{options}")
    page.wait("document.querySelector('figure canvas')")
    page.wait("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")
    columns, width = page.evaluate(
        """(() => {
            const canvas = document.querySelector('figure canvas');
            const {width, height} = canvas;
            const {data} = canvas.getContext('2d').getImageData(0, 0, width, height);
            const isBlue = (at) => data[at + 3] > 128 && data[at + 2] > data[at] + 60;
            const rows = [...Array(height).keys()];
            const hasLine = (x) => rows.some((y) => isBlue(4 * (y * width + x)));
            return [[...Array(width).keys()].filter(hasLine).length, width];
        })()"""
    )
    assert columns > width * 0.75


def test_series_are_hidden_and_pinned_by_the_legend(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    live_run(tmp_path, 60, gpus=2)
    page.open("/runs/abc/system?charts=gpu+temperature")
    page.wait("document.querySelectorAll('figure .legend-entry, figure li button').length === 2")
    before = page.evaluate("[...document.querySelectorAll('.swatch')].map(e => e.style.background)")
    click(page, "gpu 0", "figure")
    page.wait("document.querySelector('figure li button[aria-pressed=false]')?.innerText.trim() === 'gpu 0'")
    assert len(set(before)) == 2
    assert page.evaluate("document.querySelectorAll('.swatch')[1].style.background") == before[1]
    page.evaluate("location.reload()")
    page.wait("document.querySelector('figure li button[aria-pressed=false]')?.innerText.trim() === 'gpu 0'")

    click(page, "GPU temperature", "figure")
    page.wait("document.querySelectorAll('dialog table tbody tr').length === 2")
    values = page.evaluate(
        "[...document.querySelectorAll('dialog tbody tr')]"
        ".map(row => [...row.cells].map(e => e.innerText.trim()))"
    )
    assert [row[0] for row in values] == ["gpu 0", "gpu 1"]
    assert all("°C" in text for text in values[1][2:6])
    page.evaluate("document.querySelector('[aria-label=\"Pin gpu 1\"]').click()")
    page.wait("document.querySelector('[aria-label=\"Pin gpu 1\"]').ariaPressed === 'true'")
    keep_picture(page, "enlarged")


def test_a_zoom_freezes_the_charts_until_live_is_resumed(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    training = live_run(tmp_path, 100, gpus=1)
    page.open("/runs/abc/system?charts=gpu+temp")
    assert page.text(".chip") == "LIVE"
    drag(page, "figure .u-over", 0.5, 1.0)
    page.wait("document.querySelector('.zoomed')?.innerText.includes('back to live')")
    assert page.evaluate("document.querySelector('.chip')") is None
    page.mouse("mouseMoved", 5, 5)
    frozen = page.text("figure")
    training.monitor.sample(now_ms(), training._values() | {"gpu.0.temp": 123.0})
    page.wait("!document.querySelector('main').innerText.includes('123')")
    training.trainer.log(now_ms(), 1000, marker=1.0)
    page.wait("document.querySelector('.link.open')")
    assert page.text("figure") == frozen
    click(page, "GPU temperature", "figure")
    page.wait("document.querySelector('dialog[open] figure')")
    page.press("Escape")
    page.evaluate("document.querySelector('.zoomed').click()")
    page.wait("document.querySelector('figure')?.innerText.includes('123 °C')")
    assert page.text(".chip") == "LIVE"


def test_logged_values_over_any_axis(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    live_run(tmp_path, 50)
    page.open("/runs/abc/charts?charts=loss")
    page.wait("document.querySelector('figure canvas')")
    for axis, where in (
        ("elapsed", "0:"),
        ("wall", "20"),
        ("metric:accuracy", "accuracy "),
        ("step", "step "),
    ):
        choose(page, "x axis", axis)
        page.wait(f"(new URLSearchParams(location.search).get('x') ?? 'step') === {json.dumps(axis)}")
        page.evaluate("document.querySelector('.plot').focus()")
        page.press("ArrowLeft")
        page.wait(f"document.querySelector('.where')?.innerText.startsWith({json.dumps(where)})")
        assert drawn_pixels(page, "loss") > 500


def test_a_logarithmic_axis_counts_from_the_start(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    live_run(tmp_path, 50)
    middles = (
        ("/runs/abc/charts?charts=loss", "step 7"),
        ("/runs/abc/charts?charts=loss&x=elapsed", "0:0"),
        ("/runs/abc/system?charts=utilization", "0:0"),
    )
    for path, where in middles:
        page.open(path)
        page.wait("document.querySelector('figure .u-over')")
        page.evaluate(
            "[...document.querySelectorAll('label')].find(e => e.innerText.trim() === 'log x').click()"
        )
        page.wait("new URLSearchParams(location.search).get('logx') === '1'")
        page.wait("document.querySelector('figure .u-over')")
        left, top, width, height = page.box("figure .u-over")
        page.mouse("mouseMoved", left + width / 2, top + height / 2)
        page.wait(f"document.querySelector('.where')?.innerText.startsWith({json.dumps(where)})")
        page.mouse("mouseMoved", 0, 0)
    page.open("/runs/abc/system?charts=utilization&logx=1&x=wall")
    page.wait("document.querySelector('figure .u-over')")
    assert "log x" not in page.text("main")


def test_what_changed_here(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    begin = disturbed(tmp_path)
    page.open(f"/runs/abc/system?from={begin + 300_000}&to={begin + 359_999}")
    click(page, "What changed here")
    rows = page.wait(
        "(rows => rows.length && rows)"
        "([...document.querySelectorAll('section.card tbody tr')].map(row => row.innerText))"
    )
    assert [row.split("\t")[0].strip() for row in rows[:4]] == [
        "What the run logged",
        "step_time",
        "Devices, processors and memory",
        "GPU power gpu.0.powerWatts",
    ]
    assert "median absolute deviation" in page.text("section.card")
    keep_picture(page, "changes")
    click(page, "step_time", "section.card")
    page.wait("location.pathname === '/runs/abc/charts'")
    page.wait("document.querySelector('dialog[open] figure[aria-label=step_time] canvas')")
    page.evaluate("history.back()")
    click(page, "GPU power", "section.card")
    page.wait("document.querySelector('dialog[open] figure[aria-label=\"GPU power, W\"] canvas')")


def test_many_devices_are_a_heatmap_a_band_or_lines(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    fleet(tmp_path)
    page.open("/runs/abc/system")
    label = page.wait("document.querySelector('figure .heatmap')?.ariaLabel")
    assert "heatmap of 16 devices; farthest from the others: gpu 13" in label
    assert drawn_pixels(page, "GPU utilization") > 5000
    page.evaluate("document.querySelector('.heatmap').focus()")
    page.press("ArrowLeft")
    page.wait("document.querySelector('.where')?.innerText.startsWith('gpu 0: 9')")
    click(page, "sort by outlier", "figure")
    page.wait("document.querySelector('figure')?.innerText.includes('sort by name')")
    page.evaluate("document.querySelector('.heatmap').focus()")
    page.press("ArrowLeft")
    page.wait("document.querySelector('.where')?.innerText.startsWith('gpu 13: ')")
    keep_picture(page, "heatmap")

    page.open("/runs/abc/system?mode=band")
    page.wait("document.querySelectorAll('figure .label').length === 2")
    assert page.evaluate("[...document.querySelectorAll('figure .label')].map(e => e.innerText)") == [
        "mean of 16",
        "gpu 13",
    ]
    page.open("/runs/abc/system?mode=lines")
    page.wait("document.querySelectorAll('figure .label').length === 8")
    click(page, "+8", "figure")
    page.wait("document.querySelectorAll('figure .label').length === 16")
    choose(page, "Device", "13")
    page.wait("document.querySelectorAll('figure .label').length === 1")
    assert drawn_pixels(page, "GPU utilization") > 500


def test_a_heatmap_is_zoomed_by_dragging(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    begin = fleet(tmp_path)
    page.open("/runs/abc/system")
    page.wait("document.querySelector('.heatmap canvas')")
    drag(page, ".heatmap canvas", 0.5, 0.9)
    page.wait("document.querySelector('.zoomed')")
    assert begin < int(parameters(page)["from"]) < int(parameters(page)["to"]) < begin + 61_000


def test_devices_of_several_nodes_are_grouped(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    for host in ("node1", "node2"):
        monitor = Monitor(tmp_path, host=host, start_ms=now_ms() - 5000)
        for i in range(5):
            monitor.sample(now_ms() - 5000 + i * 1000, {f"gpu.{g}.gpu": 50.0 + g for g in range(4)})
    page.open("/runs/abc/system")
    page.wait("document.querySelectorAll('figure .label').length === 8")
    page.press("g")
    page.wait("document.querySelectorAll('figure .label').length === 2")
    assert "node1 (mean of 4)" in page.text("figure")
    choose(page, "Group devices", "device")
    page.wait("document.querySelectorAll('figure .label').length === 4")
    assert "device 3 (mean of 2)" in page.text("figure")


def test_keys_alone(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    live_run(tmp_path, 30)
    page.open("/runs/abc/system")
    page.wait("document.querySelectorAll('figure canvas').length >= 3")
    titled = "document.activeElement.closest('figure')?.ariaLabel"
    page.press("ArrowDown")
    first = page.wait(titled)
    page.press("ArrowDown")
    shown = page.wait(f"{titled} !== {json.dumps(first)} && {titled}")
    while shown != first:  # a chart that is drawn later takes its place in the order, also between the two
        page.press("ArrowUp")
        shown = page.wait(f"{titled} !== {json.dumps(shown)} && {titled}")
    page.press("/")
    page.wait("document.activeElement.type === 'search'")
    page.press("Escape")
    page.wait("document.activeElement === document.body")
    page.press("?")
    assert "Go to the previous or next chart" in page.text("dialog[open]")
    page.press("Escape")
    page.wait("!document.querySelector('dialog[open]')")


def downloads(page: Browser) -> None:  # noqa: F811
    """Keep what the page saves as files in `saved`, instead of saving it."""
    page.evaluate(
        """(() => {
            window.saved = [];
            const make = URL.createObjectURL;
            URL.createObjectURL = (blob) => { window.blob = blob; return make(blob); };
            HTMLAnchorElement.prototype.click = function () {
                const {download, href} = this;
                if (!href.startsWith('blob:')) return;
                const blob = window.blob;
                blob.arrayBuffer().then((all) => {
                    window.saved.push([download, blob.type, new TextDecoder().decode(all), all.byteLength]);
                });
            };
        })()"""
    )


def test_pictures_of_a_chart_and_of_the_page(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    live_run(tmp_path, 60, gpus=1, name=EVIL)
    page.open("/runs/abc/system")
    page.wait("document.querySelectorAll('figure canvas').length >= 3")
    downloads(page)
    use = "figure[aria-label^='GPU utilization']"  # others may be drawn before it
    click(page, "⋯", use)
    click(page, "Save as SVG")
    name, kind, svg, _ = page.wait("window.saved[0]")
    assert (name, kind) == ("GPU-utilization.svg", "image/svg+xml")
    assert "GPU utilization" in svg
    document = f"new DOMParser().parseFromString({json.dumps(svg)}, 'image/svg+xml')"
    assert page.evaluate(f"{document}.querySelector('parsererror')") is None
    click(page, "⋯", use)
    click(page, "Save as PNG")
    name, kind, _, size = page.wait("window.saved[1]")
    assert (name, kind) == ("GPU-utilization.png", "image/png")
    assert size > 5000
    click(page, "Options and export")
    click(page, "Save all charts as SVG")
    name, _, svg, _ = page.wait("window.saved[2]")
    charts = page.evaluate("document.querySelectorAll('.place').length")
    assert (
        svg.count("<g transform") == charts > 9
    )  # also those that are not in view, but none that is constant
    assert "<img" not in svg


def test_the_csv_of_a_chart_has_the_numbers_of_the_api(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    live_run(tmp_path, 900, gpus=2)
    page.open("/runs/abc/system?charts=gpu+power")
    page.wait("document.querySelector('figure canvas')")
    click(page, "⋯", "figure")
    href = page.wait(
        "[...document.querySelectorAll('a')].find(e => e.innerText.startsWith('CSV of the shown'))?.href"
    )
    table = [line.split(",") for line in httpx.get(href, timeout=PATIENCE_S).text.splitlines()]
    body: dict[str, Any] = httpx.get(href.replace("format=csv", "format=json"), timeout=PATIENCE_S).json()
    assert body["resolution"] == "buckets"
    (group,) = body["groups"]
    column = table[0].index("gpu.1.powerWatts")
    assert [float(row[column]) for row in table[1:]] == group["series"]["gpu.1.powerWatts"]
    assert [int(row[0]) for row in table[1:]] == group["t"]
    raw = page.evaluate("[...document.querySelectorAll('a')].find(e => /all samples/.test(e.innerText)).href")
    assert len(httpx.get(raw, timeout=PATIENCE_S).text.splitlines()) == 901


def test_output_is_searched_coloured_and_linked_to_the_charts(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    begin = disturbed(tmp_path)
    page.open("/runs/abc/logs")
    page.wait("document.querySelectorAll('.line').length === 2")
    colour = page.evaluate("getComputedStyle(document.querySelector('.line .bold')).color")
    assert colour == "rgb(179, 38, 30)"
    assert ESC not in page.text("pre")
    assert "5:30" in page.text("pre")
    keep_picture(page, "logs")
    type_into(page, "input[type=search]", "SLOW")
    page.wait("document.querySelectorAll('.line.match').length === 1")
    shown = page.evaluate("[...document.querySelectorAll('.line')].map(e => e.innerText.trim())")
    assert shown[0] == "the beginning"  # the line before
    assert "1 of 1 match" in page.text("main")
    downloads(page)
    click(page, "Download")
    assert page.wait("window.saved[0]")[:3] == [
        "abc-output.txt",
        "text/plain",
        "the beginning\nslow step 330\n",
    ]

    page.open("/runs/abc/logs")
    # Which charts a line leads to is known a moment later than the lines.
    page.wait("document.querySelectorAll('.line a')[1]?.pathname === '/runs/abc/charts'")
    page.evaluate(
        "document.querySelectorAll('.line a')[1].dispatchEvent("
        "new MouseEvent('click', {bubbles: true, cancelable: true}))"
    )
    page.wait("location.pathname === '/runs/abc/charts' && document.querySelector('.zoomed')")
    assert parameters(page) == {"from": str(begin + 300_000), "to": str(begin + 360_000)}
    click(page, "Logs of this time")
    page.wait("document.querySelectorAll('.line.chosen').length === 1")


def test_events_are_pinned_to_the_time_axis(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    disturbed(tmp_path)
    page.open("/runs/abc/system?charts=power")
    left, top, width, height = page.box("figure .u-over")
    page.wait("document.querySelector('figure canvas')")
    page.mouse("mouseMoved", left + width / 2 - 3, top + height / 2)
    page.mouse("mouseMoved", left + width / 2, top + height / 2)
    page.wait("document.querySelector('.where')?.innerText.includes('the power fell')")


def test_what_a_metric_is_and_why_one_is_missing(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    live_run(tmp_path, 10, gpus=1)
    page.open("/runs/abc/system?charts=gpu+power")
    page.wait("document.querySelector('figure canvas')")
    assert page.evaluate("getComputedStyle(document.querySelector('[role=tooltip]')).display") == "none"
    page.evaluate("document.querySelector('figure h3 button').focus()")
    page.press("Shift")  # so that the focus is shown, as it is after a key
    text = page.evaluate("document.querySelector('[role=tooltip]').textContent")
    assert "Unit: W." in text
    assert "Source: " in text
    page.open("/runs/abc/system?charts=powercap")
    section = "section[aria-label='Not measured, among what is searched']"
    assert "no readable RAPL domain" in page.text(section)


HOSTILE = f"{EVIL}{ESC}[31m\u202e\u0000{'W' * 300}"


@pytest.mark.parametrize("width", [1280, 390])
def test_hostile_names_output_and_addresses(page: Browser, tmp_path: Path, width: int) -> None:  # noqa: F811
    training = live_run(tmp_path, 30, name="hostile")
    name = HOSTILE.replace("\u0000", "")
    training.trainer.log(now_ms(), 31, **{name: 1.0, "__proto__": 2.0, "</script>": 3.0})
    training.monitor.sample(now_ms(), {name: 5.0})
    training.monitor.event(now_ms(), "alert", "error", name, title=name)
    training.monitor.printed(
        now_ms(), f"{HOSTILE}\n{ESC}]8;;javascript:alert(1){ESC}\\link{ESC}]8;;{ESC}\\\n"
    )
    page.resize(width, 900)
    for address in (
        "/runs/abc/charts",
        "/runs/abc/charts?x=metric:__proto__",
        "/runs/abc/charts?x=metric:%3Cimg%20src=x%20onerror=alert(1)%3E&from=1&to=2&open=__proto__",
        "/runs/abc/system?chart.__proto__=hide%3D__proto__&smooth=__proto__:1&y=constructor&mode=toString&by=__proto__",
        "/runs/abc/system?open=%3Cscript%3E&from=-1e308&to=1e308&changes=1&rank=__proto__&window=NaN",
        "/runs/abc/logs?q=%5B(%3Cimg%3E&from=0&to=1e15",
        "/runs/abc/logs",
    ):
        page.open(address)
        page.wait("document.querySelector('nav.tabs') && !document.body.innerText.includes('Loading …')")
        page.wait("document.querySelector('figure, pre, .empty')")
        assert page.evaluate("document.querySelectorAll('main img, main script').length") == 0
        assert "cannot be shown" not in page.text("main"), address
        assert page.evaluate("document.documentElement.scrollWidth") <= width, address
    assert page.evaluate("document.querySelector('pre').innerText.includes('\\u202e')") is False
    assert page.evaluate("[...document.querySelectorAll('pre a')].every(e => e.protocol === 'http:')")
    page.complaints[:] = [text for text in page.complaints if "422" not in text]


@pytest.mark.parametrize(
    ("name", "path", "shown"),
    [
        ("system", "/runs/abc/system", "document.querySelectorAll('figure canvas').length >= 3"),
        ("charts", "/runs/abc/charts?smooth=ema:5", "document.querySelectorAll('figure canvas').length >= 1"),
        ("logs", "/runs/abc/logs", "document.querySelector('.line')"),
        ("enlarged", "/runs/abc/system?open=CPU%0A%25", "document.querySelector('dialog[open] canvas')"),
        ("heatmap", "/runs/abc/system?mode=heatmap", "document.querySelector('.heatmap canvas')"),
        ("changes", None, "document.querySelector('section.card tbody tr')"),
        ("options", "/runs/abc/system", "document.querySelector('[popover]:popover-open .fields')"),
        ("menu", "/runs/abc/charts?y=log&smooth=mean:1", "document.querySelector(':popover-open .fields')"),
        ("keys", "/runs/abc/logs", "document.querySelector('dialog[open] dl')"),
    ],
)
def test_nothing_is_inaccessible(
    page: Browser,  # noqa: F811
    tmp_path: Path,
    name: str,
    path: str | None,
    shown: str,
) -> None:
    begin = disturbed(tmp_path)
    monitor = Monitor(tmp_path, host="node2", start_ms=begin)
    for i in range(600):
        monitor.sample(begin + i * 1000, {f"cpu.{c}.cpu_percent": 50.0 + c for c in range(12)})
    page.open(path or f"/runs/abc/system?from={begin + 300_000}&to={begin + 359_999}&changes=1")
    page.wait("document.querySelector('h1')")
    if name in ("options", "menu", "keys"):
        click(page, {"options": "Options and export", "menu": "⋯", "keys": "?"}[name])
    page.wait(shown)
    for dark in (False, True):
        page.resize(1280, 900, dark)
        page.wait("new Promise(drawn => requestAnimationFrame(() => drawn(true)))")
        keep_picture(page, f"{name}-{'dark' if dark else 'light'}")
        accessible(page, dark)
    for dark in (True, False):
        page.resize(390, 800, dark)
        page.wait("innerWidth === 390 && new Promise(drawn => requestAnimationFrame(() => drawn(true)))")
        keep_picture(page, f"{name}-{'dark' if dark else 'light'}-phone")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
