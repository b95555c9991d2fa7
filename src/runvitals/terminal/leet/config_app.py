"""`runvitals leet config`."""

from __future__ import annotations

from runvitals.terminal.leet.config_screen import ConfigScreen
from runvitals.terminal.leet.program import LeetProgram


class ConfigApp(LeetProgram):
    """`runvitals leet config`."""

    def on_mount(self) -> None:
        """Show the settings, and exit when they are closed."""
        self.push_screen(ConfigScreen(self.config), lambda _: self.exit())
