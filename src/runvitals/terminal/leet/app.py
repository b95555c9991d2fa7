"""`runvitals leet`."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from textual.app import ComposeResult

from runvitals.base.terminal_text import inert
from runvitals.terminal.leet.config import Config, ProjectState
from runvitals.terminal.leet.images.terminal_graphics import Graphics
from runvitals.terminal.leet.opening import OpeningTarget
from runvitals.terminal.leet.program import LeetProgram
from runvitals.terminal.leet.rows_widget import RowsWidget
from runvitals.terminal.leet.sources.run_source import now_ms

if TYPE_CHECKING:
    from runvitals.terminal.leet.run_screen import RunScreen
    from runvitals.terminal.leet.runs_screen import RunsScreen

_REPLAY_INTERVAL_S = 0.5


class LeetApp(LeetProgram):
    """`runvitals leet`. Charts are loaded after the first picture, which names what it opens.

    Args:
        target: the catalogue, and the run in it, to open.
        interval_s: seconds between two reads of a running run; None: as configured.
        config: the settings; None: the defaults.
        environ: environment variables, for what is kept of projects; None: nothing is kept.
        replay_speed: replay runs, this much faster than the clock; None: show them as they are.
        graphics: the way to show images.
    """

    def __init__(
        self,
        target: OpeningTarget,
        interval_s: float | None = None,
        config: Config | None = None,
        environ: Mapping[str, str] | None = None,
        replay_speed: float | None = None,
        graphics: Graphics = "blocks",
    ) -> None:
        super().__init__(config)
        self._graphics = graphics
        self._replay_speed = replay_speed
        self._target = target
        self._interval_s = interval_s or float(self.config["interval_seconds"])
        self._environ = environ
        self._runs: RunsScreen | None = None

    def compose(self) -> ComposeResult:
        """Yield the line that names what is opened."""
        self._opening = RowsWidget(id="opening")
        yield self._opening

    def on_ready(self) -> None:
        """Show the name of what is opened, and then open it."""
        name = self._target.run_id or self._target.catalogue.title
        self._opening.show([[(f" {self.TITLE} ", "title"), (f" opening {inert(name)} …", "dim")]])
        self.call_after_refresh(self._open_target)

    def on_unmount(self) -> None:
        """Close the catalogue."""
        self._target.catalogue.close()

    def _open_target(self) -> None:
        if self._target.run_id is None:
            self._show_runs()
        else:
            self._open(self._target.run_id)

    def _show_runs(self) -> None:
        """Show the list of runs, which is below a run that was opened from it."""
        from runvitals.terminal.leet.runs_screen import RunsScreen

        if self._runs is None:
            catalogue, environ = self._target.catalogue, self._environ
            state = None if environ is None else ProjectState.of_user(environ, f"runs of {catalogue.title}")
            self._runs = RunsScreen(catalogue, self._interval_s, state, self._graphics)
            self.push_screen(self._runs)

    def on_runs_screen_opened(self, event: RunsScreen.Opened) -> None:
        """Open the run that the user chose in the list."""
        self._open(event.run_id)

    def _open(self, run_id: str) -> None:
        self.push_screen(self._run_screen(run_id), lambda _: self._show_runs())

    def _run_screen(self, run_id: str) -> RunScreen:
        from runvitals.terminal.leet.replay import Replay
        from runvitals.terminal.leet.run_data import RunData
        from runvitals.terminal.leet.run_screen import RunScreen

        environ = self._environ
        state_of = None if environ is None else partial(ProjectState.of_user, environ)
        data = RunData(self._target.catalogue.open(run_id))
        speed = self._replay_speed
        replay = None if speed is None else Replay(speed, time.monotonic)
        interval_s = self._interval_s if replay is None else min(self._interval_s, _REPLAY_INTERVAL_S)
        return RunScreen(data, state_of, interval_s, replay, self._graphics)

    def on_run_screen_machine_wanted(self) -> None:
        """Show this machine."""
        self._show_machine()

    def on_runs_screen_machine_wanted(self) -> None:
        """Show this machine."""
        self._show_machine()

    def _show_machine(self) -> None:
        """Show this machine; its processes cannot be ended from here."""
        from runvitals.monitoring.settings.settings import resolve
        from runvitals.terminal.leet.machine.machine_data import MachineData
        from runvitals.terminal.leet.machine.machine_screen import MachineScreen

        values = resolve({}, os.environ, os.getcwd())
        data = MachineData(values, self._interval_s, platform.node(), now_ms)
        self.push_screen(MachineScreen(data, self._interval_s, readonly=True))
