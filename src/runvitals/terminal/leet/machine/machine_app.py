"""`runvitals top`."""

from __future__ import annotations

from runvitals.terminal.leet.config import Config
from runvitals.terminal.leet.machine.machine_data import MachineData
from runvitals.terminal.leet.machine.machine_screen import MachineScreen
from runvitals.terminal.leet.program import LeetProgram


class MachineApp(LeetProgram):
    """`runvitals top`.

    Args:
        data: samples the machine.
        interval_s: between two samples.
        readonly: whether processes cannot be killed.
    """

    TITLE = "runvitals top"

    def __init__(
        self, data: MachineData, interval_s: float, readonly: bool, config: Config | None = None
    ) -> None:
        super().__init__(config)
        self._machine = MachineScreen(data, interval_s, readonly)

    def on_mount(self) -> None:
        """Show the screen of the machine."""
        self.push_screen(self._machine)
