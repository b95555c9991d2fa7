"""The base of leet's programs: colours, restart, and the end when the terminal is gone."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import MutableMapping

from textual.app import App
from textual.driver import Driver

from runvitals.terminal.leet.config import Config
from runvitals.terminal.leet.palette import Palette
from runvitals.terminal.leet.rows_widget import RowsWidget

_TERMINAL_CHECK_S = 1.0
_TERMINAL_GONE = 129
"""As for a program that SIGHUP ended."""


def _driver_class() -> type[Driver] | None:
    """Return our driver; None for Textual's own, on Windows."""
    if sys.platform == "win32":
        return None
    from runvitals.terminal.leet.terminal_driver import TerminalDriver

    return TerminalDriver


class LeetProgram(App[None]):
    """The base of leet's programs.

    Args:
        config: the settings; None: the defaults.
    """

    TITLE = "runvitals leet"
    ENABLE_COMMAND_PALETTE = False
    ALLOW_SELECT = False  # a drag moves borders; with shift, terminals select text themselves
    CSS = "* { background: ansi_default; color: ansi_default; }"  # the terminal's own, light or dark

    def __init__(self, config: Config | None) -> None:
        super().__init__(driver_class=_driver_class(), ansi_color=True)
        self.config = config or Config("")
        self.wants_restart = False
        RowsWidget.palette = Palette(self.config["line_colours"], self.config["heat_colours"])

    def run_in_terminal(self, environ: MutableMapping[str, str]) -> int:
        """Run until the user quits.

        Programs that use readline leave LINES and COLUMNS in the environment of their children. Textual would
        take these for the size, also after the terminal was resized.

        Args:
            environ: environment variables of this process.

        Returns:
            The exit status.
        """
        environ.pop("LINES", None)
        environ.pop("COLUMNS", None)
        self.run()
        if self.wants_restart:
            os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
        return self.return_code or 0

    def action_restart(self) -> None:
        """Start again, which reads everything anew, the configuration too."""
        self.wants_restart = True
        self.exit()

    def on_mount(self) -> None:
        """Start to check whether the terminal is still there."""
        if not self.is_headless:
            self.set_interval(_TERMINAL_CHECK_S, self._end_without_terminal)

    def _end_without_terminal(self) -> None:
        """End when the terminal is gone. Textual would read its end of file for ever, with a core of CPU.

        A terminal that closes sends SIGHUP to the programs that it controls, which are not all.
        """
        standard_input = select.poll()
        standard_input.register(sys.stdin.fileno(), select.POLLHUP)
        if standard_input.poll(0):
            self.exit(return_code=_TERMINAL_GONE)
