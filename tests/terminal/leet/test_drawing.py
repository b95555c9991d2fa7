"""What draws a chart: the canvas, axes, the reduction to dots, and the chart itself."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from rich.cells import cell_len

from runvitals.terminal.leet import axes, chart_view
from runvitals.terminal.leet.braille import BrailleCanvas, Row
from runvitals.terminal.leet.chart_view import ChartLine, ChartStyle
from runvitals.terminal.leet.heatmap import LEVELS
from runvitals.terminal.leet.palette import HEAT_SCHEMES, LINE_SCHEMES, Palette
from runvitals.terminal.leet.reduction import columns, means
from runvitals.terminal.leet.series_column import BLOCK, SeriesColumn
from runvitals.terminal.leet.x_window import XWindow

NAN = math.nan


def texts(rows: list[Row]) -> list[str]:
    return ["".join(text for text, _ in row) for row in rows]


def chart(
    lines: list[ChartLine], width: int = 30, height: int = 8, unit: str = "W", **style: object
) -> list[str]:
    rows = chart_view.draw("Power", unit, lines, (0.0, 10_000.0), width, height, ChartStyle(**style)).rows
    assert {cell_len(text) for text in texts(rows)} == {width}
    assert len(rows) == height
    return texts(rows)


def test_dots_are_numbered_as_unicode_numbers_them() -> None:
    canvas = BrailleCanvas(1, 1)
    canvas.dot(0, 3, "a")  # top left
    canvas.dot(1, 0, "a")  # bottom right
    assert canvas.rows() == [[("⢁", "a")]]


@pytest.mark.parametrize(("low", "high"), [(0, 0), (1, 6), (3, 4), (0, 11), (-5, 99), (8, 11)])
def test_a_vertical_line_is_as_one_of_dots(low: int, high: int) -> None:
    for x in (0, 3):
        whole, dots = BrailleCanvas(2, 3), BrailleCanvas(2, 3)
        whole.vertical(x, low, high, "a")
        dots.line(x, low, x, high, "a")
        assert whole.rows() == dots.rows()


def test_dots_outside_the_canvas_are_left_out() -> None:
    canvas = BrailleCanvas(2, 1)
    canvas.line(-5, -5, -1, 9, "a")
    canvas.line(4, 0, 9, 0, "a")
    assert texts(canvas.rows()) == ["  "]


def test_a_cell_has_the_colour_of_the_last_line() -> None:
    canvas = BrailleCanvas(3, 1)
    canvas.line(0, 0, 5, 0, "a")
    canvas.line(2, 3, 3, 3, "b")
    assert canvas.rows() == [[("⣀", "a"), ("⣉", "b"), ("⣀", "a")]]


def test_guides_do_not_cover_lines() -> None:
    canvas = BrailleCanvas(2, 1)
    canvas.line(0, 0, 1, 0, "a")
    canvas.guide(3, "guide", 1)
    assert canvas.rows() == [[("⣀", "a"), ("⠉", "guide")]]


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (1536.0, "MiB", "1.5 GiB"),
        (0.5, "GiB", "512 MiB"),
        (3.2e6, "bytes/s", "3.05 MiB/s"),
        (83.25, "%", "83.2 %"),
        (2850.0, "MHz", "2,850 MHz"),
        (1_250_000.0, "", "1.25M"),
        (0.0003, "", "0.0003"),
        (0.0, "W", "0 W"),
        (NAN, "W", "–"),
        (1e300, "", "1.00e+300"),
    ],
)
def test_labels_have_units(value: float, unit: str, shown: str) -> None:
    assert axes.label(value, unit) == shown


def test_ranges() -> None:
    assert axes.y_range(20.0, 30.0, "%", log=False) == (0.0, 100.0)
    assert axes.labels([14.02, 14.01, 0.0], "MiB") == ["14.02 MiB", "14.01 MiB", "0 B"]
    assert axes.labels([0.5, 0.25], "") == ["0.5", "0.25"]
    assert axes.y_range(20.0, 100.4, "%", log=False) == (0.0, 100.0)
    assert axes.y_range(20.0, 800.0, "%", log=False)[1] > 800.0  # of a process on eight cores
    assert axes.y_range(5.0, 5.0, "W", log=False) == (0.0, 7.5)
    assert axes.y_range(-5.0, -5.0, "", log=False) == (-7.5, -2.5)
    assert axes.y_range(3.0, 4000.0, "", log=True) == (1.0, 10_000.0)
    assert axes.y_range(10.0, 10.0, "", log=True) == (1.0, 100.0)


def test_reduction_keeps_extremes() -> None:
    y = np.zeros(10_000)
    y[5_000] = 7.0
    drawn = columns(SeriesColumn(np.arange(10_000), y), 0, 9_999, 20)
    assert len(drawn) == 20
    assert max(column.high for column in drawn) == 7.0
    assert all(column.joins for column in drawn[1:])


def test_nan_interrupts_a_line() -> None:
    drawn = columns(SeriesColumn([0, 1, 2, 3, 4], [1.0, 2.0, NAN, 3.0, 4.0]), 0, 4, 5)
    assert [(column.x, column.joins) for column in drawn] == [(0, False), (1, True), (3, False), (4, True)]


def test_missing_samples_interrupt_a_line_over_time_but_not_over_steps() -> None:
    x = [0, 1, 2, 3, 4, 50, 51]
    y = [1.0] * 7
    assert [column.joins for column in columns(SeriesColumn(x, y), 0, 51, 100)] == [
        False,
        *[True] * 4,
        False,
        True,
    ]
    assert all(column.joins for column in columns(SeriesColumn(x, y), 0, 51, 100, find_gaps=False)[1:])


def test_a_log_scale_has_no_place_for_zero() -> None:
    drawn = columns(SeriesColumn([0, 1, 2], [1.0, 0.0, 10.0]), 0, 2, 3, log=True)
    assert [(column.x, column.joins) for column in drawn] == [(0, False), (2, False)]
    assert SeriesColumn([0, 1, 2], [0.0, -1.0, 10.0]).value_range(0, 2, log=True) == (10.0, 10.0)


def test_infinite_values_and_steps_that_go_back() -> None:
    drawn = columns(SeriesColumn([3, 1, 2], [math.inf, 1.0, 2.0]), 1, 3, 3)
    assert [(column.x, column.high) for column in drawn] == [(0, 1.0), (1, 2.0)]


def day(gap: bool = False) -> tuple[np.ndarray, np.ndarray]:
    x = np.arange(86_400) * 1000.0
    y = np.sin(x / 1e6) * 50.0 + 50.0
    y[40_000] = 900.0
    return (x + (x > 50_000_000) * 7_200_000 if gap else x), y


@pytest.mark.parametrize("gap", [False, True])
def test_blocks_of_values_are_drawn_as_the_values_are(gap: bool) -> None:
    x, y = day(gap)
    whole = SeriesColumn(x, y)
    grown = SeriesColumn()
    for start in range(0, len(x), 1000):  # as polls add them
        grown.extend(x[start : start + 1000], y[start : start + 1000])
    assert len(whole.elements(0, x[-1], 800, find_gaps=True, log=False).x) < 5000
    for series in (whole, grown):
        drawn = columns(series, 0, x[-1], 200)
        by_value = columns(series, 0, x[-1], 2 * len(x))  # too many dots for blocks
        assert max(column.high for column in drawn) == 900.0
        assert {column.x: column.low for column in drawn} == pytest.approx(
            {x_drawn: min(one.low for one in by_value if one.x * 200 // (2 * len(x)) == x_drawn)
             for x_drawn in {column.x for column in drawn}}, abs=3.0
        )  # fmt: skip
        assert sum(not column.joins for column in drawn) == 1 + gap
        assert series.value_range(0, x[-1]) == (float(y.min()), 900.0)


def test_gaps_in_blocks_are_drawn() -> None:
    x, y = day()
    y[20_000:30_000] = NAN
    drawn = columns(SeriesColumn(x, y), 0, x[-1], 100)
    assert [column.x for column in drawn if not column.joins] == [0, 34]
    assert not {25, 30} & {column.x for column in drawn}
    y[::BLOCK] = NAN  # in every block
    assert sum(not column.joins for column in columns(SeriesColumn(x, y), 0, x[-1], 50_000)) > 1000


def test_a_series_that_goes_back_is_sorted() -> None:
    series = SeriesColumn([0, 1, 2], [0.0, 1.0, 2.0])
    before = series.snapshot()
    series.extend([1.5], [1.5])
    assert list(series.y) == [0.0, 1.0, 1.5, 2.0]
    assert list(before.y) == [0.0, 1.0, 2.0]
    assert series.nearest(1.6) == (1.5, 1.5)
    assert series.first(2).count == series.count_until(1.2) == 2


def test_means() -> None:
    averages = means(SeriesColumn([0, 1, 2, 9], [1.0, 3.0, NAN, 8.0]), 0, 10, 5)
    assert averages[0] == 2.0
    assert math.isnan(averages[1])
    assert averages[4] == 8.0


def test_parts_between_two_values_are_no_gaps() -> None:
    series = SeriesColumn([0, 10, 20, 30, 200, 210], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    averages = means(series, 0, 220, 44)
    assert averages[:7] == [1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0]
    assert [index for index, value in enumerate(averages) if math.isnan(value)] == [*range(7, 40), 43]


def test_only_the_range_is_drawn() -> None:
    assert columns(SeriesColumn([0, 100], [1.0, 2.0]), 10, 20, 5) == []
    assert columns(SeriesColumn(), 0, 1, 5) == []


def test_a_chart() -> None:
    line = ChartLine("gpu 0", SeriesColumn([0, 5_000, 10_000], [100.0, 300.0, 200.0]), 0)
    shown = chart([line])
    assert shown[0].startswith("╭─ Power ──")
    assert shown[0].endswith(" 200 W ╮")
    assert shown[1].startswith("│310 W┤")
    assert shown[5].startswith("│ 90 W┤")
    assert shown[6].split() == ["│", "└0s", "10s│"]


def test_an_axis_counts_from_the_start_of_the_run() -> None:
    line = ChartLine("", SeriesColumn([0, 10_000], [1.0, 2.0]), 0)
    assert chart([line], x_start=-60_000.0)[6].split() == ["│", "└1m", "1m10s│"]
    assert chart([line], on_time=False)[6].split() == ["│", "└0", "10k│"]


def test_a_legend_names_lines_in_their_colours_and_counts_the_rest() -> None:
    lines = [ChartLine(f"node{index}", SeriesColumn([0, 1], [1.0, 2.0]), index) for index in range(9)]
    rows = chart_view.draw("Power", "W", lines, (0.0, 1.0), 30, 6, ChartStyle()).rows
    named = [part for part in rows[-1] if part[1].startswith("line")]
    assert named == [(f" node{index}", f"line{index}") for index in range(4)]
    assert texts(rows)[-1].endswith(" +5╯")


def test_a_long_name_in_a_legend_is_cut() -> None:
    lines = [
        ChartLine("simulated h100x8, 2 hosts", SeriesColumn([0, 1], [1.0, 2.0]), index) for index in range(2)
    ]
    assert chart(lines, 18)[-1] == "╰─ simulated… +1 ╯"


@pytest.mark.parametrize("height", [5, 6, 12, 40])
@pytest.mark.parametrize("width", [18, 19, 60])
def test_every_size_fits(width: int, height: int) -> None:
    wide = ChartLine("学習 rank 0", SeriesColumn([0, 10_000], [1e-9, 3e12]), 0)
    assert chart([wide, wide], width, height, guides="lines", log=True)
    assert [row.strip("│ ") for row in chart([], width, height)[1:-1]].count("no values") == 1


def test_log_scale_of_values_that_are_not_positive() -> None:
    assert "no values above 0" in "".join(
        chart([ChartLine("", SeriesColumn([0, 1], [0.0, -1.0]), 0)], log=True)
    )


def test_elapsed() -> None:
    shown = [axes.elapsed(ms) for ms in (0, 999, 60_000, 3_605_000, -5_000, 90_000_000)]
    assert shown == ["0s", "1s", "1m", "1h", "-5s", "1d1h"]


def test_a_window_on_the_axis() -> None:
    everything = (0.0, 1000.0)
    window = XWindow(100.0, (10.0, 100.0, 500.0))
    assert window.range(everything) == (900.0, 1000.0)
    window.step(1, everything)
    assert window.range(everything) == (500.0, 1000.0)
    window.step(1, everything)
    window.step(1, everything)
    assert window.range(everything) == everything
    assert window.note(str, "whole run") == "whole run"
    window.zoom(0.5, 200.0, everything)
    assert (window.range(everything), window.is_frozen) == ((100.0, 600.0), True)
    assert window.range((0.0, 2000.0)) == (100.0, 600.0)  # new values do not move it
    window.pan(0.5, everything)
    assert window.range(everything) == (350.0, 850.0)
    assert window.note(str, "") == "frozen, 500.0"
    window.pan(5.0, everything)
    assert (window.range(everything), window.is_frozen) == ((500.0, 1000.0), False)  # at the end it goes on
    assert window.range((0.0, 1010.0)) == (510.0, 1010.0)
    window.pan(-5.0, everything)
    assert window.range(everything) == (0.0, 500.0)
    window.step(-1, everything)
    assert window.range(everything) == (125.0, 375.0)
    window.follow()
    assert window.range(everything) == (500.0, 1000.0)
    window.zoom(1e-12, 700.0, everything)
    assert window.range(everything) == (500.0, 1000.0)  # not smaller than can be drawn


def test_growing_values_do_not_move_the_picture_at_each_value() -> None:
    for window in (XWindow(100.0), XWindow()):
        ranges = [window.steady((0.0, end), 50) for end in (1000.0, 1001.0, 1002.0, 1023.0)]
        for (low, high), end in zip(ranges, (1000.0, 1001.0, 1002.0, 1023.0), strict=True):
            assert end <= high < end * 1.02
            assert low in (0.0, high - 100.0)
        assert ranges[1] == ranges[0] or ranges[1] == ranges[2]
        assert ranges[3] != ranges[0]
    window = XWindow()
    window.zoom(0.5, 300.0, (0.0, 1000.0))
    assert window.steady((0.0, 1000.0), 50) == window.range((0.0, 1000.0))  # frozen: exact


def test_zooming_by_steps() -> None:
    window = XWindow()
    window.step(-1, (0.0, 100.0))
    assert window.range((0.0, 100.0)) == (50.0, 100.0)
    window.step(1, (0.0, 100.0))
    assert window.range((0.0, 100.0)) == (0.0, 100.0)


def devices(count: int) -> list[ChartLine]:
    return [
        ChartLine(f"node1 {index}", SeriesColumn([0, 5_000, 10_000], [0.0, 50.0, 100.0]), index)
        for index in range(count)
    ]


def test_a_heatmap_has_a_row_for_each_series() -> None:
    rows = chart_view.draw("Use", "%", devices(3), (0, 10_000), 30, 9, ChartStyle(is_heatmap=True)).rows
    assert {cell_len(text) for text in texts(rows)} == {30}
    assert texts(rows)[1].startswith("│node1 0│█")
    cells = [part for part in rows[1] if part[1].startswith("heat")]
    assert [style for _, style in cells] == ["heat0", "heat5", "heat9"]
    assert "0 % ██████████ 100 %" in texts(rows)[-2]
    assert texts(rows)[4].strip("│ ") == ""


def test_a_heatmap_of_many_series_has_two_or_more_in_a_row() -> None:
    for count, colours in ((14, True), (200, True), (200, False)):
        style = ChartStyle(is_heatmap=True, has_colours=colours)
        rows = chart_view.draw("Use", "%", devices(count), (0, 10_000), 40, 12, style).rows
        assert len(rows) == 12
        assert {cell_len(text) for text in texts(rows)} == {40}
        assert ("▀" in texts(rows)[1]) == colours
    assert {"·", "▒", "█"} <= set(texts(rows)[1])  # without colours hotter is denser


def test_a_crosshair_shows_values_and_where_it_is() -> None:
    lines = [
        ChartLine(name, SeriesColumn([0, 5_000, 10_000], [1.0, y, 3.0]), 0)
        for name, y in (("a", 2.0), ("b", 4.0))
    ]
    rows = texts(chart_view.draw("Power", "W", lines, (0, 10_000), 50, 10, ChartStyle(cross=5_100.0)).rows)
    assert rows[-1].startswith("╰─ a 2 W b 4 W ")
    assert " 5s " in rows[-2]
    assert sum("│" in row[10:-1] for row in rows[1:-2]) > 4
    alone = texts(chart_view.draw("P", "W", lines[:1], (0, 10_000), 50, 10, ChartStyle(cross=0.0)).rows)
    assert alone[0].endswith(" 1 W ╮")
    assert {cell_len(row) for row in (*rows, *alone)} == {50}


@pytest.mark.parametrize("scheme", LINE_SCHEMES)
def test_every_style_has_a_colour_in_every_scheme(scheme: str) -> None:
    for heat in HEAT_SCHEMES:
        palette = Palette(scheme, heat)
        for name in ("bad", "warn", "cross", f"line{chart_view.COLOURS - 1}", f"heat{LEVELS - 1}on0"):
            assert palette[name].color is not None
        assert palette["heat1on9"].bgcolor == palette["heat9"].color


MOST = sys.float_info.max


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("is_heatmap", [False, True])
@pytest.mark.parametrize(
    "values",
    [
        [-MOST, MOST, 0.0], [MOST, MOST], [5e-324, 0.0, 5e-324], [5e-324, MOST], [1e17, 1e17 + 16],
        [3.4e38, 1.0], [math.nan, math.inf, -math.inf, 1e308, -1e308],
    ],
)  # fmt: skip
def test_values_of_any_size(values: list[float], is_heatmap: bool, log: bool) -> None:
    series = SeriesColumn(list(range(len(values))), values)
    lines = [ChartLine("a", series, 0), ChartLine("b", series, 1)]
    style = ChartStyle(log=log, is_heatmap=is_heatmap)
    rows = chart_view.draw("x", "W", lines, (0.0, 4.0), 60, 14, style).rows
    assert {sum(cell_len(text) for text, _ in row) for row in rows} == {60}
