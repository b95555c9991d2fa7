"""What the screens show, without a terminal: layout, charts, console lines, list of runs, what is opened."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.cells import cell_len

from runvitals.base.regular_expressions import finder
from runvitals.model.errors import UnknownRun
from runvitals.readers.journals.console import ConsoleText
from runvitals.terminal.leet import keys as leet_keys
from runvitals.terminal.leet.chart_layout import ChartLayout
from runvitals.terminal.leet.charts import (
    Chart,
    SeriesName,
    line_names,
    matching,
    metric_charts,
    system_charts,
)
from runvitals.terminal.leet.console_lines import console_lines
from runvitals.terminal.leet.keys import Key
from runvitals.terminal.leet.line_filter import LineFilter
from runvitals.terminal.leet.opening import Surroundings, parse_address, target
from runvitals.terminal.leet.overview import ending, overview
from runvitals.terminal.leet.run_data import RunData
from runvitals.terminal.leet.run_table import MAX_SELECTED, ListedRuns, newest_use
from runvitals.terminal.leet.sources.journal_catalogue import JournalCatalogue
from runvitals.terminal.leet.sources.journals import JournalSource
from tests.readers.journals.journals import MACHINE, T0, Monitor, Trainer

EVIL = "\x1b]0;owned\x07\x1b[31m\u202eevil"


def test_pages() -> None:
    layout = ChartLayout(3, 2, count=14)
    layout.fit(80, 20)
    assert (layout.per_page, layout.pages, list(layout.shown)) == (6, 3, [0, 1, 2, 3, 4, 5])
    layout.turn(1)
    layout.move(1, 1)
    assert layout.focus == 10
    layout.turn(2)
    assert layout.page == 0  # after the last page, the first
    layout.to_end(True)
    assert list(layout.shown) == [12, 13]
    layout.move(0, 1)
    assert layout.focus == 12  # there is no chart below
    layout.resize(3)
    assert layout.focus == 2


def test_small_terminals_show_fewer_charts() -> None:
    layout = ChartLayout(4, 3, count=12)
    layout.fit(40, 11)
    assert (layout.shown_columns, layout.shown_rows) == (2, 2)
    layout.fit(3, 2)
    assert (layout.shown_columns, layout.shown_rows, layout.pages) == (1, 1, 12)


def test_places_cover_the_area() -> None:
    layout = ChartLayout(3, 2, count=6)
    layout.fit(61, 13)
    cells = [
        (x, y)
        for left, top, width, height in map(layout.area, layout.shown)
        for x in range(left, left + width)
        for y in range(top, top + height)
    ]
    assert len(cells) == len(set(cells)) == 61 * 13
    assert all(layout.at(*layout.area(index)[:2]) == index for index in layout.shown)
    assert layout.at(61, 0) is None


def test_system_charts_have_units_and_show_rates_and_unknown_keys() -> None:
    keys = ["gpu.10.temp", "gpu.2.temp", "cpu", "disk.in", "vendor.strange", f"x{EVIL}"]
    charts = system_charts({("a", "monitor"): keys, ("b", "monitor"): ["cpu"]})
    by_title = {chart.title: chart for chart in charts}
    assert [line[:2] for line in by_title["CPU"].lines] == [("cpu", "a"), ("cpu", "b")]
    temperature = next(chart for chart in charts if chart.unit == "°C")
    assert [line.key for line in temperature.lines] == ["gpu.2.temp", "gpu.10.temp"]
    assert line_names(temperature) == ["2", "10"]
    assert line_names(by_title["CPU"]) == ["a", "b"]
    assert any(line.key == "disk.readMBps" for chart in charts for line in chart.lines)
    assert not any(line.key == "disk.in" for chart in charts for line in chart.lines)
    assert (by_title["vendor.strange"].unit, charts[-2].title) == ("", "vendor.strange")
    assert "\x1b" not in line_names(charts[-1])[0]


def test_metric_charts_and_filter() -> None:
    charts = metric_charts(["val/acc", "loss.10", "loss.9"])
    assert [chart.title for chart in charts] == ["loss.9", "loss.10", "val/acc"]
    assert [chart.title for chart in matching(charts, finder("^val/"))] == ["val/acc"]
    gpu = Chart("Temperature", "°C", (SeriesName("gpu.0.temp", "a", "monitor"),))
    assert matching([gpu], finder(r"^gpu\."))  # keys match too


def test_console_lines() -> None:
    pieces = [
        ConsoleText(0, "stdout", "epoch 1\nloss", "console.a"),
        ConsoleText(1, "stdout", f" 0.5\r\n{EVIL}\n", "console.a"),
        ConsoleText(2, "stderr", "10 %\r50 %\r", "console.a"),
    ]
    lines = console_lines(pieces)
    assert [line.text for line in lines] == ["epoch 1", "loss 0.5", "\\u202eevil", "50 %"]
    assert [line.time_ms for line in lines] == [0, 1, 1, 2]  # of their ends


def test_run_data(tmp_path: Path) -> None:
    monitor, trainer = Monitor(tmp_path), Trainer(tmp_path, rank=3)
    monitor.info(T0, machine={**MACHINE, "cwd": EVIL}, config={"lr": 0.1, "name": EVIL})
    monitor.sample(T0 + 1000, {"cpu": 10.0, "odd": 1.0})
    trainer.log(T0 + 1000, 5, loss=0.5)
    data = RunData(JournalSource("abc", str(tmp_path), clock=lambda: T0 + 2000))
    assert data.poll()
    assert not data.poll()
    (loss,) = data.metric_charts()
    trainer.log(T0 + 2000, 6, loss=0.25)
    monitor.sample(T0 + 2000, {"cpu": 20.0, "odd": 1.0})
    assert data.poll()
    ((line,),) = data.logged_lines([loss], on_time=False)
    assert (line.name, list(line.series.x), list(line.series.y)) == ("rank 3", [5.0, 6.0], [0.5, 0.25])
    ((cpu,), (odd,)) = data.system_lines(data.system_charts(), (0, T0))
    assert (list(cpu.series.y), list(odd.series.y)) == ([10.0, 20.0], [1.0, 1.0])
    assert data.time_range() == (T0, T0 + 2000)
    text = "\n".join("".join(part for part, _ in row) for row in overview(data.run))
    assert "lr 0.1" in text
    assert "cpu_model AMD EPYC" in text
    assert text.replace("\n", "").isprintable()


def test_a_signal_has_its_name(tmp_path: Path) -> None:
    Monitor(tmp_path).end(T0, "crashed", signal=9, out_of_memory=True)
    data = RunData(JournalSource("abc", str(tmp_path)))
    data.poll()
    assert ending(data.run) == "crashed (SIGKILL, out of memory)"


def test_a_process_that_started_again_has_a_line_of_its_own(tmp_path: Path) -> None:
    Monitor(tmp_path)
    for pid, start_ms in ((1, T0), (2, T0 + 5000)):
        Trainer(tmp_path, pid=pid, rank=0, start_ms=start_ms).log(start_ms, 1, loss=1.0)
    data = RunData(JournalSource("abc", str(tmp_path)))
    data.poll()
    ((first, second),) = data.logged_lines(data.metric_charts(), on_time=True)
    assert (first.name, second.name) == ("rank 0 #1", "rank 0 #2")


def runs(folder: Path, count: int) -> ListedRuns:
    for index in range(count):
        monitor = Monitor(folder, f"run-{index}", start_ms=T0 + index * 1000)
        monitor.info(T0, config={"lr": index / 10}, run={"name": f"name {index}{EVIL}"})
        monitor.end(T0 + 60_000, "failed" if index % 2 else "finished", exit_code=index % 2)
    table = ListedRuns(JournalCatalogue(str(folder)))
    table.set_runs(*table.read(T0 + 120_000))
    return table


def test_use_of_devices() -> None:
    first = {"gpu.0.gpu": 90.0, "gpu.1.gpu": 70.0, "gpu.0.memoryAllocated": 45.0, "cpu": 5.0}
    assert newest_use({"node1": first, "node2": {"cpu": 1.0}}) == "GPU 80% mem 45%"
    assert newest_use({"node1": {"cpu": 12.0, "memory_percent": float("nan")}}) == "CPU 12%"
    assert newest_use({}) == ""


def test_list_of_runs(tmp_path: Path) -> None:
    table = runs(tmp_path, 4)
    assert [run.id for run in table.runs] == ["run-3", "run-2", "run-1", "run-0"]
    table.move(2)
    table.set_filter("state:failed config.lr<0.2")
    assert [run.id for run in table.runs] == ["run-1"]
    assert table.current.id == "run-1"  # the cursor stays on its run
    table.toggle()
    table.set_filter("")
    table.move(-9)
    table.toggle()
    assert table.selected == {"run-1": 0, "run-3": 1}
    shown = ["".join(text for text, _ in row) for row in table.rows(60, 0, 2)]
    assert shown[0].startswith("● failed   name 3")
    assert all(row.isprintable() and cell_len(row) <= 60 for row in shown)
    with pytest.raises(ValueError, match="state:broken"):
        table.set_filter("state:broken")
    with pytest.raises(ValueError, match="no system statistics"):
        table.set_filter("gpu.util<20")
    assert len(table.runs) == 4
    table.toggle_pin()
    pinned = table.current.id
    table.clear_selection()
    assert list(table.selected) == [table.pinned] == [pinned]
    assert "".join(text for text, _ in table.rows(60, 0, 4)[table.cursor]).startswith("▶ ")
    table.toggle_pin()
    table.clear_selection()
    assert not table.selected


def test_as_many_runs_are_selected_as_there_are_colours(tmp_path: Path) -> None:
    table = runs(tmp_path, MAX_SELECTED + 2)
    table.select_all()
    assert sorted(table.selected.values()) == list(range(MAX_SELECTED))
    table.toggle()  # gives its colour back
    table.move(MAX_SELECTED + 1)
    table.toggle()
    assert len(table.selected) == MAX_SELECTED


def test_many_runs_are_read_less_often(tmp_path: Path) -> None:
    cpu_s = iter([0.0, 0.1, 5.0, 5.001, 6.0, 60.0])
    table = ListedRuns(JournalCatalogue(str(tmp_path)), lambda: next(cpu_s))
    pauses = []
    for _ in range(3):
        table.read(T0)
        pauses.append(table.pause_s(1.0))
    assert pauses == [pytest.approx(4.0), 1.0, 30.0]


def test_what_is_opened(tmp_path: Path) -> None:
    data = tmp_path / "data"
    for index, folder in enumerate(("/projects/mine", "/elsewhere")):
        monitor = Monitor(data, f"run-{index}", start_ms=T0 + index)
        monitor.info(T0, machine={"cwd": folder})
        monitor.end(T0 + 1000)
    directory = str(data)

    def opened(argument: str | None, folder: str = directory, here: str = "/") -> tuple[str, str | None]:
        found = target(argument, Surroundings(folder, here, None, {}))
        return found.catalogue.title, found.run_id

    assert opened(None, here="/projects/mine") == (directory, "run-0")
    assert opened(None, here="/projects/other") == (directory, "run-1")
    assert opened("run-0") == (directory, "run-0")
    assert opened(str(data / "runs" / "run-0"), "/nowhere") == (directory, "run-0")
    assert opened(directory, "/nowhere") == (directory, None)
    with pytest.raises(UnknownRun, match="did you mean run-0"):
        opened("run0")
    with pytest.raises(UnknownRun, match="no runs in"):
        opened(None, str(tmp_path / "empty"), str(tmp_path))
    (tmp_path / "empty").mkdir()
    with pytest.raises(UnknownRun, match=r"no run in .*empty, nor one of .* started there"):
        opened(str(tmp_path / "empty"))
    (tmp_path / "notes.txt").touch()
    with pytest.raises(ValueError, match=r"notes.txt: neither a folder nor a \.wandb file"):
        opened(str(tmp_path / "notes.txt"))
    for missing in ("./missing", "missing.wandb"):
        with pytest.raises(ValueError, match=r"missing.*: no such file or folder"):
            opened(missing)
    broken = tmp_path / "run.wandb"
    broken.write_bytes(b"")
    with pytest.raises(ValueError, match=r"not a \.wandb file"):
        opened(str(broken))


@pytest.mark.parametrize(
    ("url", "server", "parsed"),
    [
        ("https://example.org/", "", (None, None)),
        ("https://example.org/runs/a%20b/logs", "", (None, "a b")),
        ("https://example.org/vitals/runs/abc", "/vitals", (None, "abc")),
        ("https://example.org/team/digits/runs/abc", "", (None, "abc")),
        ("https://example.org/projects/digits", "", ("digits", None)),
    ],
)
def test_addresses(url: str, server: str, parsed: tuple[str | None, str | None]) -> None:
    base = f"https://example.org{server}"
    assert parse_address(url, lambda asked: asked == base) == (base, *parsed)
    assert parse_address(url, lambda asked: None) == (base, *parsed)  # nothing answers: the likeliest


@pytest.mark.parametrize(
    ("url", "server", "parsed"),
    [
        ("https://example.org/proxy/8900/runs/abc", "/proxy/8900", (None, "abc")),
        ("https://example.org/user/ada/proxy/8900/runs/abc", "/user/ada/proxy/8900", (None, "abc")),
        ("https://example.org/proxy/8900/main/digits/runs/runs", "/proxy/8900", (None, "runs")),
        ("https://example.org/a%20b/", "/a%20b", (None, None)),
        ("https://example.org/vision/digits", "", ("digits", None)),
        ("https://example.org/vision/digits/runs", "", ("digits", None)),
    ],
)
def test_the_server_says_where_its_path_ends(
    url: str, server: str, parsed: tuple[str | None, str | None]
) -> None:
    base = f"https://example.org{server}"
    assert parse_address(url, lambda asked: asked == base) == (base, *parsed)


def test_filter_of_nodes_ranks_and_devices() -> None:
    only = LineFilter.parse("node:^gpu rank:0-1,8 device:3")
    assert [only.shows_process("gpu-1", rank) for rank in (0, 1, 2, 8, None)] == [
        True,
        True,
        False,
        True,
        True,
    ]
    assert not only.shows_process("login", 0)
    keys = ["gpu.3.temp", "gpu.2.temp", "cpu.2.cpu_percent", "memory"]
    chart = Chart("", "", tuple(SeriesName(key, "gpu-1", "monitor") for key in keys))
    assert [line.key for line in only.of_system(chart).lines] == ["gpu.3.temp", "cpu.2.cpu_percent", "memory"]
    for text in ("rank:x", "device:", "host:a", "abc", "node:("):
        with pytest.raises(ValueError, match=r"expected|invalid"):
            LineFilter.parse(text)


@pytest.mark.parametrize("keys", [leet_keys.RUN, leet_keys.RUNS, leet_keys.INSPECT, leet_keys.MACHINE])
def test_no_key_has_two_effects(keys: tuple[Key, ...]) -> None:
    names = [name for key in keys for name in key.keys.split(",")]
    assert sorted(names) == sorted(set(names))
