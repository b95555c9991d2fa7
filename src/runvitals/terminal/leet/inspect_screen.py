"""The record browser: the list of a run's records, and the content of one; `runvitals leet inspect`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal

from runvitals.base.regular_expressions import finder
from runvitals.base.terminal_text import inert
from runvitals.terminal.leet.braille import Row
from runvitals.terminal.leet.config import Config
from runvitals.terminal.leet.filtered_screen import READ_ERRORS, FilteredScreen
from runvitals.terminal.leet.inspection import reader_of
from runvitals.terminal.leet.keys import INSPECT, bindings
from runvitals.terminal.leet.pane import ListPane
from runvitals.terminal.leet.pane_borders import Border
from runvitals.terminal.leet.program import LeetProgram
from runvitals.terminal.leet.record_log import LoggedRecord, RecordLog, moment_of
from runvitals.terminal.leet.sources.run_source import RunSource
from runvitals.terminal.leet.text_pane import TextPane

_INTERVAL_S = 1.0


class RecordsPane(ListPane):
    """The list of records, of which only those in view are turned into text.

    Args:
        log: the records to show.
    """

    def __init__(self, log: RecordLog, *, id: str) -> None:
        super().__init__("Records", id=id)
        self.follows = False
        self.cursor = 0
        self._log = log
        self._is_wanted: Callable[[str], bool] | None = None
        self._matching_records: list[LoggedRecord] | None = None  # those that match the filter

    @property
    def count(self) -> int:
        """The number of records that match the filter."""
        return len(self._log.records) if self._matching_records is None else len(self._matching_records)

    @property
    def cursor_index(self) -> int:
        """The index of the record at the cursor."""
        return self.cursor

    @property
    def current(self) -> LoggedRecord | None:
        """The record at the cursor."""
        if not self.count:
            return None
        return (
            self._log.records[self.cursor]
            if self._matching_records is None
            else self._matching_records[self.cursor]
        )

    def add(self, new: Sequence[LoggedRecord]) -> None:
        """Show what was read."""
        self._log.add(new)
        if self._matching_records is not None:
            self._matching_records += filter(self._matches, new)
        self.move_cursor(self.count if self.follows else 0)

    def _matches(self, record: LoggedRecord) -> bool:
        assert self._is_wanted is not None
        return self._is_wanted(f"{record.kind} {record.writer} {record.brief}")

    def set_filter(self, pattern: str) -> None:
        """Show only records with a kind, writer or content that matches a regex, or raise ValueError."""
        self._is_wanted = finder(pattern) if pattern else None
        self.pattern = pattern
        self._matching_records = (
            None if self._is_wanted is None else list(filter(self._matches, self._log.records))
        )
        self.move_cursor(self.count if self.follows else 0)

    def move_cursor(self, rows: int) -> None:
        """Move the cursor. Away from the newest record, it follows no longer."""
        self.follows = self.follows and rows >= 0
        self.cursor = min(max(self.cursor + rows, 0), max(self.count - 1, 0))
        self.redraw()

    def redraw(self) -> None:
        """Show the records around the cursor."""
        first = self.first
        total = len(self._log.records)
        notes = [f"{self.count} of {total} with {inert(self.pattern)}" if self.pattern else f"{total:,}"]
        notes += [f"the oldest {self._log.left_out:,} are left out"] if self._log.left_out else []
        notes += ["following"] if self.follows else []
        style = "focus" if self.has_focus else "dim"
        rows: list[Row] = [[(self.title, style), (f"  {' · '.join(notes)}", "dim")]]
        for index in range(first, min(first + self.page, self.count)):
            record = (
                self._log.records[index] if self._matching_records is None else self._matching_records[index]
            )
            at = "cursor" if index == self.cursor else ""
            rows.append([
                (f"{moment_of(record)[11:]:<13}", "dim"),
                (f"{record.kind:<10} ", "value"),
                (record.brief, at),
            ])  # fmt: skip
        self.show(rows)
        if isinstance(self.screen, InspectScreen):
            self.screen.show_detail()


class InspectScreen(FilteredScreen):
    """The screen of a run's records.

    Args:
        title: the name of the run.
        log: the records.
        follows: whether the newest record is shown as records are written.
        interval_s: seconds between two reads.
    """

    DEFAULT_CSS = """
    InspectScreen #records { width: 3fr; }
    InspectScreen #detail { width: 2fr; }
    InspectScreen.narrow Horizontal { layout: vertical; }
    InspectScreen.narrow #records, InspectScreen.narrow #detail { width: 1fr; height: 1fr; }
    """
    HINT = " h help · / filter · f follow · tab content · q quit"
    KEYS = INSPECT
    HELP = "Keys of the records"
    BINDINGS = bindings(INSPECT)

    def __init__(self, title: str, log: RecordLog, follows: bool, interval_s: float) -> None:
        super().__init__()
        self._title = inert(title)
        self._log = log
        self._interval_s = interval_s
        self._detailed: LoggedRecord | None = None
        self.records = RecordsPane(log, id="records")
        self.records.follows = follows
        self.detail = TextPane("Content", id="detail")

    def compose(self) -> ComposeResult:
        """Yield the list of records and the content of one."""
        yield self.header
        with Horizontal():
            yield self.records
            yield self.detail
        yield self.footer
        yield self.filter

    @property
    def default_pane(self) -> RecordsPane:
        """The list of records."""
        return self.records

    def on_mount(self) -> None:
        """Start to read the records."""
        self.records.focus()
        self.run_worker(self._follow(), exclusive=True)

    def on_unmount(self) -> None:
        """Close the records."""
        self._log.close()

    def on_resize(self, event: events.Resize) -> None:
        """Put the content below the list in a narrow terminal."""
        is_narrow = event.size.width < 90
        self.set_class(is_narrow, "narrow")
        self.borders.set_borders([Border(self.detail, "top" if is_narrow else "left")])
        self.call_after_refresh(self.header.show, [[(f" {self._title}", "title")]])
        self.call_after_refresh(self.show_footer)

    async def _follow(self) -> None:
        while True:
            try:
                new = await asyncio.to_thread(self._log.read)
            except READ_ERRORS as error:
                self.report("the records", error)
            else:
                self.report("the records", None)
                if new:
                    self.records.add(new)
            await asyncio.sleep(self._interval_s)

    def show_detail(self) -> None:
        """Show the content of the record at the cursor."""
        record = self.records.current
        if record is self._detailed or record is None:
            return
        self._detailed = record
        about = f"{record.kind} {record.number} · {moment_of(record) or 'no time'}"
        writer = f" · {inert(record.writer)}" if record.writer else ""
        self.detail.title = about + writer
        self.detail.to_end(False)
        self.detail.set_rows([[(line, "")] for line in record.detail])

    def action_to_end(self, last: bool) -> None:
        """Go to the last record and follow new ones, or go to the first."""
        self.records.follows = last if self.records.has_focus else self.records.follows
        super().action_to_end(last)

    def action_borders(self) -> None:
        """Give both panes their usual sizes."""
        self.borders.reset()

    def action_follow(self) -> None:
        """Follow the newest record, or stop."""
        self.records.follows = not self.records.follows
        self.records.add([])

    def action_filter(self) -> None:
        """Edit the filter of the pane in focus."""
        self.edit_filter(self.detail if self.detail.has_focus else self.records)

    def action_clear(self) -> None:
        """Clear the filter of the pane in focus."""
        (self.detail if self.detail.has_focus else self.records).set_filter("")

    def leave(self) -> None:
        """Go back to the list, or to the run."""
        if self.detail.has_focus:
            self.records.focus()
        elif len(self.app.screen_stack) > 2:
            self.dismiss()


class InspectApp(LeetProgram):
    """`runvitals leet inspect`.

    Args:
        source: the run.
        follows: whether the newest record is shown as records are written.
        interval_s: seconds between two reads.

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
