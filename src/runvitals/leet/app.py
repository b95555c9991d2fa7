"""The program: its screens, and what they have in common."""

from __future__ import annotations

from textual.app import App

from runvitals.leet.opening import OpeningTarget
from runvitals.leet.run_data import RunData
from runvitals.leet.run_screen import RunScreen
from runvitals.leet.runs_screen import RunsScreen

INTERVAL_S = 1.0


class LeetApp(App[None]):
    """`runvitals leet`.

    Args:
        target: what to open.
        interval_s: between two looks at a running run.
    """

    TITLE = "runvitals leet"
    ENABLE_COMMAND_PALETTE = False
    CSS = "* { background: ansi_default; color: ansi_default; }"  # the terminal's own, light or dark

    def __init__(self, target: OpeningTarget, interval_s: float = INTERVAL_S) -> None:
        super().__init__(ansi_color=True)
        self._target = target
        self._interval_s = interval_s

    def on_mount(self) -> None:
        self.push_screen(RunsScreen(self._target.directory, self._interval_s))
        if self._target.run_id is not None:
            self._open(self._target.run_id)

    def on_runs_screen_opened(self, event: RunsScreen.Opened) -> None:
        self._open(event.run_id)

    def _open(self, run_id: str) -> None:
        self.push_screen(RunScreen(RunData(run_id, self._target.directory), self._interval_s))
