"""`runvitals leet inspect` on the screen."""

from __future__ import annotations

from runvitals.terminal.leet.config import Config
from runvitals.terminal.leet.inspect_screen import InspectScreen
from runvitals.terminal.leet.inspection import reader_of
from runvitals.terminal.leet.program import LeetProgram
from runvitals.terminal.leet.record_log import RecordLog
from runvitals.terminal.leet.sources.run_source import RunSource

_INTERVAL_S = 1.0


class InspectApp(LeetProgram):
    """`runvitals leet inspect`.

    Args:
        source: the run.
        follows: whether the newest record is shown as records are written.
        interval_s: between two looks.

    Raises:
        ValueError: a run of a server, which has no records.
    """

    def __init__(
        self,
        source: RunSource,
        follows: bool,
        interval_s: float = _INTERVAL_S,
        config: Config | None = None,
    ) -> None:
        super().__init__(config)
        self._reader = reader_of(source)
        self._source, self._follows, self._interval_s = source, follows, interval_s

    def on_mount(self) -> None:
        """Read the run's name, and show its records."""
        self._source.poll()
        title = "" if self._source.run is None else self._source.run.name
        self.push_screen(InspectScreen(title, RecordLog(self._reader), self._follows, self._interval_s))
