"""What draws a chart: the canvas, axes, the reduction to dots, and the chart itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
from rich.cells import cell_len

from runvitals.leet import axes, chart_view
from runvitals.leet.braille import BrailleCanvas, Row
from runvitals.leet.chart_view import ChartLine, ChartStyle
from runvitals.leet.reduction import columns, value_range

NAN = math.nan


def texts(rows: list[Row]) -> list[str]:
    return ["".join(text for text, _ in row) for row in rows]


def chart(
    lines: list[ChartLine], width: int = 30, height: int = 8, unit: str = "W", **style: object
) -> list[str]:
    rows = chart_view.draw("Power", unit, lines, (0.0, 10_000.0), width, height, ChartStyle(**style))
    assert {cell_len(text) for text in texts(rows)} == {width}
    assert len(rows) == height
    return texts(rows)


def test_dots_are_numbered_as_unicode_numbers_them() -> None:
    canvas = BrailleCanvas(1, 1)
    canvas.dot(0, 3, "a")  # top left
    canvas.dot(1, 0, "a")  # bottom right
    assert canvas.rows() == [[("⢁", "a")]]


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
    assert axes.y_range(20.0, 800.0, "%", log=False)[1] > 800.0  # of a process on eight cores
    assert axes.y_range(5.0, 5.0, "W", log=False) == (0.0, 7.5)
    assert axes.y_range(-5.0, -5.0, "", log=False) == (-7.5, -2.5)
    assert axes.y_range(3.0, 4000.0, "", log=True) == (1.0, 10_000.0)
    assert axes.y_range(10.0, 10.0, "", log=True) == (1.0, 100.0)


def test_reduction_keeps_extremes() -> None:
    y = np.zeros(10_000)
    y[5_000] = 7.0
    found = columns(np.arange(10_000), y, 0, 9_999, 20)
    assert len(found) == 20
    assert max(column.high for column in found) == 7.0
    assert all(column.joins for column in found[1:])


def test_nan_interrupts_a_line() -> None:
    found = columns([0, 1, 2, 3, 4], [1.0, 2.0, NAN, 3.0, 4.0], 0, 4, 5)
    assert [(column.x, column.joins) for column in found] == [(0, False), (1, True), (3, False), (4, True)]


def test_missing_samples_interrupt_a_line_over_time_but_not_over_steps() -> None:
    x = [0, 1, 2, 3, 4, 50, 51]
    y = [1.0] * 7
    assert [column.joins for column in columns(x, y, 0, 51, 100)] == [False, *[True] * 4, False, True]
    assert all(column.joins for column in columns(x, y, 0, 51, 100, find_gaps=False)[1:])


def test_a_log_scale_has_no_place_for_zero() -> None:
    found = columns([0, 1, 2], [1.0, 0.0, 10.0], 0, 2, 3, log=True)
    assert [(column.x, column.joins) for column in found] == [(0, False), (2, False)]
    assert value_range([0, 1, 2], [0.0, -1.0, 10.0], 0, 2, log=True) == (10.0, 10.0)


def test_infinite_values_and_steps_that_go_back() -> None:
    found = columns([3, 1, 2], [math.inf, 1.0, 2.0], 1, 3, 3)
    assert [(column.x, column.high) for column in found] == [(0, 1.0), (1, 2.0)]


def test_only_the_range_is_drawn() -> None:
    assert columns([0, 100], [1.0, 2.0], 10, 20, 5) == []
    assert columns([], [], 0, 1, 5) == []


def test_a_chart() -> None:
    line = ChartLine("gpu 0", [0, 5_000, 10_000], [100.0, 300.0, 200.0], 0)
    shown = chart([line])
    assert shown[0].startswith("╭─ Power ──")
    assert shown[0].endswith(" 200 W ╮")
    assert shown[1].startswith("│310 W┤")
    assert shown[5].startswith("│ 90 W┤")
    assert shown[6].split() == ["│", "└0s", "10s│"]


def test_an_axis_counts_from_the_start_of_the_run() -> None:
    line = ChartLine("", [0, 10_000], [1.0, 2.0], 0)
    assert chart([line], x_start=-60_000.0)[6].split() == ["│", "└1m", "1m10s│"]
    assert chart([line], on_time=False)[6].split() == ["│", "└0", "10k│"]


def test_a_legend_names_lines_in_their_colours_and_counts_the_rest() -> None:
    lines = [ChartLine(f"node{index}", [0, 1], [1.0, 2.0], index) for index in range(9)]
    rows = chart_view.draw("Power", "W", lines, (0.0, 1.0), 30, 6, ChartStyle())
    named = [part for part in rows[-1] if part[1].startswith("line")]
    assert named == [(f" node{index}", f"line{index}") for index in range(4)]
    assert texts(rows)[-1].endswith(" +5╯")


def test_a_long_name_in_a_legend_is_cut() -> None:
    lines = [ChartLine("simulated h100x8, 2 hosts", [0, 1], [1.0, 2.0], index) for index in range(2)]
    assert chart(lines, 18)[-1] == "╰─ simulated… +1 ╯"


@pytest.mark.parametrize("height", [5, 6, 12, 40])
@pytest.mark.parametrize("width", [18, 19, 60])
def test_every_size_fits(width: int, height: int) -> None:
    wide = ChartLine("学習 rank 0", [0, 10_000], [1e-9, 3e12], 0)
    assert chart([wide, wide], width, height, guides="lines", log=True)
    assert [row.strip("│ ") for row in chart([], width, height)[1:-1]].count("no values") == 1


def test_log_scale_of_values_that_are_not_positive() -> None:
    assert "no values above 0" in "".join(chart([ChartLine("", [0, 1], [0.0, -1.0], 0)], log=True))


def test_elapsed() -> None:
    shown = [axes.elapsed(ms) for ms in (0, 999, 60_000, 3_605_000, -5_000, 90_000_000)]
    assert shown == ["0s", "1s", "1m", "1h", "-5s", "1d1h"]
