"""What the programs of leet have in common, and the editor of the configuration as one."""

from __future__ import annotations

import select
import sys

from textual.app import App

from runvitals.leet.config import Config
from runvitals.leet.config_screen import ConfigScreen
from runvitals.leet.palette import Palette
from runvitals.leet.rows_widget import RowsWidget

_TERMINAL_CHECK_S = 1.0
_TERMINAL_GONE = 129
"""As for a program that SIGHUP ended."""


class LeetProgram(App[None]):
    """What the programs of leet have in common.

    Args:
        config: the settings; None: those without a file.
    """

    TITLE = "runvitals leet"
    ENABLE_COMMAND_PALETTE = False
    CSS = "* { background: ansi_default; color: ansi_default; }"  # the terminal's own, light or dark

    def __init__(self, config: Config | None) -> None:
        super().__init__(ansi_color=True)
        self.config = config or Config("")
        RowsWidget.palette = Palette(self.config["line_colours"], self.config["heat_colours"])

    def on_mount(self) -> None:
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


class ConfigApp(LeetProgram):
    """`runvitals leet config`."""

    def on_mount(self) -> None:
        self.push_screen(ConfigScreen(self.config), lambda _: self.exit())
