"""The keys of all screens and what they do. Where W&B's LEET has a key for something, ours is the same."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import NamedTuple

from textual.binding import Binding, BindingType

from runvitals.terminal.leet.braille import Row


class Key(NamedTuple):
    """Keys with one effect.

    Args:
        keys: as Textual names them, separated by commas; "" for keys of one pane.
        action: the action of the screen.
        shown: their names in the help.
        text: their effect.
    """

    keys: str
    action: str
    shown: str
    text: str


EVERYWHERE = (
    Key("h,question_mark", "help", "h ?", "this help"),
    Key("colon", "palette", ":", "command palette: everything that keys do, by name"),
    Key("S", "config", "S", "change the settings"),
    Key("alt+r", "app.restart", "alt+r", "start again, with the same arguments"),
    Key("ctrl+z", "app.suspend_process", "ctrl+z", "suspend; `fg` in the shell goes on"),
    Key("q,ctrl+c", "app.quit", "q ctrl+c", "quit"),
)
CHARTS = (
    Key("w,up", "move(0, -1)", "w ↑", "chart above, or scroll up"),
    Key("s,down", "move(0, 1)", "s ↓", "chart below, or scroll down"),
    Key("a,left", "move(-1, 0)", "a ←", "chart to the left"),
    Key("d,right", "move(1, 0)", "d →", "chart to the right"),
    Key("n,pagedown", "turn(1)", "n pgdn", "next page"),
    Key("N,pageup", "turn(-1)", "N pgup", "previous page"),
    Key("home", "to_end(False)", "home", "first page"),
    Key("end", "to_end(True)", "end", "last page"),
    Key(
        "slash",
        "filter",
        "/",
        "filter metrics by a regular expression (tab: glob), or the focused console",
    ),
    Key("backslash", "filter_system", "\\", "filter system metrics"),
    Key(
        "ctrl+l,ctrl+slash,ctrl+underscore",
        "clear",
        "ctrl+l ctrl+/",
        "clear the filter of metrics or console",
    ),
    Key("ctrl+backslash", "clear_system", "ctrl+\\", "clear the filter of system metrics"),
    Key("y", "mode", "y", "the focused chart with lines, on a logarithmic axis, or as a heatmap"),
    Key("g", "guides", "g", "guides: off, dots, lines"),
    Key("c", "choose('columns')", "c 1…9", "columns of the focused grid"),
    Key("r", "choose('rows')", "r 1…9", "rows of the focused grid"),
    Key("plus,equals_sign", "zoom(-1)", "+ wheel", "zoom in; the wheel zooms at the mouse"),
    Key("minus", "zoom(1)", "- wheel", "zoom out, up to everything"),
    Key("shift+left,less_than_sign", "pan(-0.5)", "< shift+←", "back along the x-axis; charts stay there"),
    Key("shift+right,greater_than_sign", "pan(0.5)", "> shift+→", "forward along the x-axis"),
    Key("L", "follow(False)", "L", "follow the newest values again"),
    Key("A", "follow(True)", "A", "show everything"),
    Key(
        "comma",
        "cross(-1)",
        ", right-drag",
        "crosshair: values at a time or step in all charts; move it back",
    ),
    Key("full_stop", "cross(1)", ".", "move the crosshair on"),
    Key("v", "no_cross", "v", "no crosshair"),
)
OVERVIEW = (
    Key("o", "filter_overview", "o", "filter the overview"),
    Key("ctrl+o", "clear_overview", "ctrl+o", "clear the filter of the overview"),
)
MEDIA = (
    Key("3", "digit(3)", "3", "show or hide images"),
    Key("", "", "← →", "in images: one step back or on; ↑ and ↓ ten steps, w a s d other images"),
    Key("k", "graphics", "k", "images as half blocks, or as well as the terminal can"),
)
RUN = (
    Key("escape", "back", "esc", "leave the filter, the full screen, or the pane; back to the runs"),
    Key("enter", "full", "enter", "show the focused chart on the full screen"),
    Key("tab", "app.focus_next", "tab", "next pane"),
    Key("shift+tab", "app.focus_previous", "shift+tab", "previous pane"),
    Key("1", "digit(1)", "1", "show or hide metrics"),
    Key("2,right_square_bracket", "digit(2)", "2 ]", "show or hide system metrics"),
    *MEDIA,
    Key("4", "digit(4)", "4", "show or hide console logs"),
    Key("left_square_bracket", "overview", "[", "show or hide the overview"),
    Key("f", "findings", "f 5", "show or hide the findings: what is wrong, what it costs, what to do"),
    Key("e", "deciding", "e", "the charts that decided a finding, at its time; again: the next finding"),
    Key("space", "pause", "space", "replay: pause or go on; at the end, start again"),
    Key("left_curly_bracket", "seek(-0.05)", "{", "replay: back by a twentieth of the run"),
    Key("right_curly_bracket", "seek(0.05)", "}", "replay: forward by a twentieth of the run"),
    Key("left_parenthesis", "speed(-1)", "(", "replay: slower"),
    Key("right_parenthesis", "speed(1)", ")", "replay: faster"),
    Key("i", "inspect", "i", "the records of the run"),
    Key("l", "link", "l", "link the console and the crosshair of charts; in images, the steps of all"),
    *OVERVIEW,
    Key(
        "F", "filter_lines", "F", "show some nodes, ranks and devices only: node:REGEX rank:0-3,8 device:0,1"
    ),
    Key("M", "machine", "M", "this machine: meters, charts and processes"),
    Key("0", "digit(0)", "0", "panes in their usual sizes; the mouse drags the borders between them"),
    *(Key(str(digit), f"digit({digit})", "", "") for digit in (5, 6, 7, 8, 9)),
    *CHARTS,
    Key("X", "x_axis", "X", "metrics over steps or time"),
    *EVERYWHERE,
)

RUNS = (
    Key("enter", "open", "enter", "open the run at the cursor, or the focused chart on the full screen"),
    Key("space", "select_run", "space", "select the run, or no longer"),
    Key("ctrl+a", "select_all", "ctrl+a", "select all runs that match the filter, up to 8; y confirms"),
    Key("x", "deselect", "x", "select none, except the pinned run"),
    Key("p", "pin", "p", "pin the run: it stays selected, and is drawn over the others"),
    Key("M", "machine", "M", "this machine: meters, charts and processes"),
    Key("f", "filter_runs", "f", "filter runs, as on the page"),
    Key("ctrl+f", "clear_runs", "ctrl+f", "clear the filter of runs"),
    Key("escape", "back", "esc", "leave the filter, the full screen, or the pane; to the list of runs"),
    Key("tab", "app.focus_next", "tab", "next pane"),
    Key("shift+tab", "app.focus_previous", "shift+tab", "previous pane"),
    Key("X", "x_axis", "X", "metrics over steps or time"),
    Key("1", "digit(1)", "1", "show or hide metrics"),
    Key("2", "digit(2)", "2", "show or hide system metrics of the run at the cursor"),
    *MEDIA,
    Key("l", "link", "l", "in images: link the steps of all"),
    Key("4", "digit(4)", "4", "show or hide console logs of the run at the cursor"),
    Key("left_square_bracket", "runs", "[", "show or hide the list of runs"),
    Key("right_square_bracket", "overview", "]", "show or hide the overview of the run at the cursor"),
    *OVERVIEW,
    Key("0", "digit(0)", "0", "panes in their usual sizes; the mouse drags the borders between them"),
    *(Key(str(digit), f"digit({digit})", "", "") for digit in (5, 6, 7, 8, 9)),
    *CHARTS,
    *EVERYWHERE,
)

INSPECT = (
    Key("w,up", "move(0, -1)", "w ↑", "record above, or scroll up"),
    Key("s,down", "move(0, 1)", "s ↓", "record below, or scroll down"),
    Key("n,pagedown", "turn(1)", "n pgdn", "next page"),
    Key("N,pageup", "turn(-1)", "N pgup", "previous page"),
    Key("a,left", "move(-1, 0)", "a ←", "previous page"),
    Key("d,right", "move(1, 0)", "d →", "next page"),
    Key("home", "to_end(False)", "home", "first record"),
    Key("end", "to_end(True)", "end", "last record; follows those that are written"),
    Key("tab", "app.focus_next", "tab", "list or content"),
    Key("shift+tab", "app.focus_previous", "", ""),
    Key("f", "follow", "f", "follow: show the newest record as records are written"),
    Key("slash", "filter", "/", "filter by a regular expression over kind, writer and content"),
    Key("ctrl+l,ctrl+slash,ctrl+underscore", "clear", "ctrl+l ctrl+/", "clear the filter"),
    Key("0", "borders", "0", "panes in their usual sizes; the mouse drags the border between them"),
    Key("escape,i", "back", "esc i", "leave the filter, or the content; back to the run"),
    *EVERYWHERE,
)

# All charts of a machine are system metrics: both filters are the same.
_OTHER_ON_MACHINE = {
    "filter": Key("slash,backslash", "filter", "/ \\", "filter charts by a regular expression (tab: glob)"),
    "clear": Key(
        "ctrl+l,ctrl+slash,ctrl+underscore,ctrl+backslash",
        "clear",
        "ctrl+l ctrl+\\",
        "clear the filter of charts",
    ),
    "choose('columns')": Key("c,C", "choose('columns')", "c 1…9", "columns of charts"),
    "choose('rows')": Key("r,R", "choose('rows')", "r 1…9", "rows of charts"),
}
_CHARTS_OF_MACHINE = tuple(
    _OTHER_ON_MACHINE.get(key.action, key) for key in CHARTS if not key.action.endswith("_system")
)
MACHINE = (
    Key("f", "filter_processes", "f", "filter processes by PID, user and command"),
    Key("ctrl+f", "clear_processes", "ctrl+f", "clear the filter of processes"),
    Key("t", "sort", "t", "sort processes by CPU, memory, GPU memory, CPU time, PID"),
    Key("T", "tree", "T", "processes as a tree"),
    Key("k", "end('SIGTERM')", "k", "ask the process at the cursor to end (SIGTERM), after a question"),
    Key("K", "end('SIGKILL')", "K", "kill the process at the cursor (SIGKILL), after a question"),
    Key("enter", "full", "enter", "show the focused chart on the full screen"),
    Key("escape", "back", "esc", "leave the filter, the full screen, or the pane; to the processes"),
    Key("tab", "app.focus_next", "tab", "next pane"),
    Key("shift+tab", "app.focus_previous", "shift+tab", "previous pane"),
    Key("left_square_bracket", "meters", "[", "show or hide the meters"),
    Key("0", "digit(0)", "0", "panes in their usual sizes; the mouse drags the borders between them"),
    *(Key(str(digit), f"digit({digit})", "", "") for digit in range(1, 10)),
    *_CHARTS_OF_MACHINE,
    *EVERYWHERE,
)


def bindings(keys: Sequence[Key]) -> list[BindingType]:
    """Return the keys of a screen for Textual."""
    return [Binding(key.keys, key.action, key.text, show=False) for key in keys if key.keys]


def help_rows(title: str, keys: Sequence[Key], width: int) -> list[Row]:
    """Return the keys and what they do, in lines of a width."""
    described = [key for key in keys if key.text]
    first = max(len(key.shown) for key in described) + 3
    rows: list[Row] = [[(title, "title")], [("", "")]]
    for key in described:
        lines = textwrap.wrap(key.text, max(width - first, 20))
        for index, line in enumerate(lines):
            name = "" if index else f" {key.shown}"
            rows.append([(f"{name:<{first}}", "value"), (line, "")])
    return rows
