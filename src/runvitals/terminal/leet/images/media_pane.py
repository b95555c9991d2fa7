"""The pane of images: a grid of the names under which a run logged some, each with its own step."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len
from textual import events, work
from textual.app import App
from textual.binding import Binding

from runvitals.base.terminal_text import inert
from runvitals.model.errors import UnknownRun
from runvitals.model.media import IMAGE
from runvitals.terminal.leet.braille import Row
from runvitals.terminal.leet.chart_layout import ChartLayout
from runvitals.terminal.leet.fitting_text import align_left, cut
from runvitals.terminal.leet.images.image_series import ImageSeries
from runvitals.terminal.leet.images.terminal_graphics import PLACEHOLDER, Graphics, cell_pixels
from runvitals.terminal.leet.pane import GridPane
from runvitals.terminal.leet.sources.run_source import RunSource

USUAL_SIZE = (2, 1)
_MAX_SIDE_BY_SIDE = 4
_TALLEST = 60
_HEAD_ROWS = 2
"""Rows above the images of a tile: its name and step, and the captions."""


@dataclass(eq=False, slots=True)
class DrawnImage:
    """An image in the size of its area: its cells, and what is sent to the terminal beside them."""

    rows: list[Row]
    sequence: str = ""


@dataclass(frozen=True, slots=True)
class _Placed:
    """A picture at a cell of the pane."""

    x: int
    y: int
    picture: DrawnImage


class MediaPane(GridPane):
    """Images. The arrows change the step of those in focus, or of all of them while they are linked.

    Args:
        source: the run; None: there is none yet.
        graphics: the way to show images.
    """

    BINDINGS = [
        Binding("left", "scrub(-1)", show=False),
        Binding("right", "scrub(1)", show=False),
        Binding("up", "scrub(-10)", show=False),
        Binding("down", "scrub(10)", show=False),
    ]

    def __init__(self, source: RunSource | None, graphics: Graphics, *, id: str) -> None:
        super().__init__("Media", id=id)
        self.is_linked = False
        self._source = source
        self._graphics: Graphics = graphics
        self._best: Graphics = graphics
        self._usual_size = USUAL_SIZE
        self._layout = ChartLayout(*USUAL_SIZE)
        self._counts: dict[str, int] = {}
        self._series: dict[str, ImageSeries] = {}
        self._linked_step: float | None = None
        self._pictures: dict[Any, list[DrawnImage]] = {}  # of the tiles in view
        self._placed: list[_Placed] = []
        self._sent = 0

    # -- what is shown

    def set_source(self, source: RunSource | None) -> None:
        """Show the images of another run."""
        if source is not self._source:
            self._source = source
            self._counts, self._series, self._pictures = {}, {}, {}
            self._layout.resize(0)
            self.redraw()

    def update(self) -> None:
        """Read which images there are, and show the newest, or those that were chosen."""
        if self._source is None:
            return
        counts = {key.key: key.count for key in self._source.media_keys() if key.kind == IMAGE}
        if counts != self._counts:
            self._counts = counts
            self._layout.resize(len(counts))
            self._show_images()

    @property
    def has_images(self) -> bool:
        """Whether the run logged any."""
        return bool(self._counts)

    @property
    def _names(self) -> list[str]:
        """The names in view."""
        names, layout = list(self._counts), self._layout
        return names[layout.focus : layout.focus + 1] if self.is_full else [names[at] for at in layout.shown]

    @property
    def _focused(self) -> ImageSeries | None:
        names = list(self._counts)
        return self._series.get(names[self._layout.focus]) if names else None

    @work(exclusive=True, group="media")
    async def _show_images(self) -> None:
        """Read and decode what is in view, and draw it."""
        source, (width, height) = self._source, self.size
        if source is None or width <= 4 or height <= 3 + _HEAD_ROWS:
            return
        self._layout.fit(width, height - 1)
        tiles = [(self._series.setdefault(name, ImageSeries(name)), area) for name, area in self._tiles()]
        for series, _ in tiles:
            await self._read(source, series)
        requests = [(series, *area[2:]) for series, area in tiles]
        drawn = await asyncio.gather(*(self._pictures_of(source, *request) for request in requests))
        if source is self._source:
            self._pictures = {
                self._key(*request): pictures for request, pictures in zip(requests, drawn, strict=True)
            }
            self.redraw()

    def _tiles(self) -> list[tuple[str, tuple[int, int, int, int]]]:
        """Return the names in view, and their areas: x, y, width and height in the pane below its title."""
        if self.is_full:
            return [(name, (0, 0, self.size.width, self.size.height - 1)) for name in self._names]
        return list(zip(self._names, map(self._layout.area, self._layout.shown), strict=True))

    async def _read(self, source: RunSource, series: ImageSeries) -> None:
        count = self._counts.get(series.name, 0)
        if series.count == count:
            return
        try:
            series.set_records(await asyncio.to_thread(source.media, series.name), count)
        except (OSError, UnknownRun, ValueError) as error:
            series.problem = f"the images cannot be read: {inert(error)}"
        if self.is_linked and self._linked_step is not None:
            series.to_step(self._linked_step)

    def _key(self, series: ImageSeries, width: int, height: int) -> Any:
        return series.name, id(series.record), width, height, self._graphics

    async def _pictures_of(
        self, source: RunSource, series: ImageSeries, width: int, height: int
    ) -> list[DrawnImage]:
        drawn = self._pictures.get(self._key(series, width, height))
        if drawn is not None:
            return drawn
        items = [] if series.record is None else series.record.items[:_MAX_SIDE_BY_SIDE]
        room = width // max(len(items), 1) - 1
        rows = min(height - _HEAD_ROWS, _TALLEST)
        tasks = [asyncio.to_thread(self._picture, source, item, room, rows) for item in items]
        return list(await asyncio.gather(*tasks))

    def _picture(self, source: RunSource, item: Mapping[str, Any], width: int, height: int) -> DrawnImage:
        """Return an item in the size of its area."""
        if not (item.get("sha256") or item.get("file")):
            return DrawnImage([[(cut(inert(item.get("error") or "no file"), width), "bad")]])
        # Imported here, because they take 40 ms and most users look at no images.
        from runvitals.terminal.leet.images import kitty
        from runvitals.terminal.leet.images.decoding import UnreadableImage, decode
        from runvitals.terminal.leet.images.half_blocks import rows_of
        from runvitals.terminal.leet.images.sixel import sixels

        cell_width, cell_height = cell_pixels() if self._graphics != "blocks" else (1, 2)
        try:
            image = decode(source.content(item), width * cell_width, height * cell_height)
        except (OSError, UnknownRun, ValueError, UnreadableImage) as error:
            return DrawnImage([[(cut(inert(error), width), "bad")]])
        columns = max(-(-image.width // cell_width), 1)
        rows = max(-(-image.height // cell_height), 1)
        if self._graphics == "blocks":
            return DrawnImage(rows_of(image, self.palette.has_colours))
        if self._graphics == "sixel":
            return DrawnImage([[(" " * columns, "")]] * rows, sixels(image))
        self._sent += 1
        number = 1 + (id(self) + self._sent) % 0xFFFFFE
        sequence = kitty.transmission(image, number, columns, rows)
        return DrawnImage(kitty.placeholders(number, columns, rows), sequence)

    # -- drawing

    def redraw(self) -> None:
        """Show what was read."""
        width, height = self.size
        if width < 4 or height < 4:
            return
        self._layout.fit(width, height - 1)
        lines: dict[int, Row] = {y: [] for y in range(height - 1)}
        self._placed = []
        for name, (start, top, wide, high) in self._tiles():
            series = self._series.get(name, ImageSeries(name))
            pictures = self._pictures.get(self._key(series, wide, high), [])
            for y, row in enumerate(self._tile(series, pictures, wide, high)):
                lines[top + y] += row
            each = wide // max(len(pictures), 1)
            self._placed += [
                _Placed(start + index * each, 1 + top + _HEAD_ROWS, picture)
                for index, picture in enumerate(pictures)
                if picture.sequence
            ]
        if not self._counts:
            lines[0] = [("  no images yet", "dim")]
        self.show([self._head(), *lines.values()])
        if self._placed:
            self.call_after_refresh(self._send)

    def _tile(
        self, series: ImageSeries, pictures: Sequence[DrawnImage], width: int, height: int
    ) -> list[Row]:
        """Return the rows of the images of one name, each `width` cells wide."""
        record, is_focused = series.record, self.has_focus and series is self._focused
        items = [] if record is None else record.items
        hidden = len(items) - _MAX_SIDE_BY_SIDE
        more = f" · {hidden} more side by side" if hidden > 0 else ""
        name = cut(inert(series.name), max(width // 2, 8))
        position = align_left(f"  {series.position}{more}", width - cell_len(name))
        captions = " | ".join(str(item["caption"]) for item in items if item.get("caption"))
        about = series.problem or inert(captions)
        style = "bad" if series.problem else "dim"
        rows: list[Row] = [
            [(name, "focus" if is_focused else "title"), (position, "dim")],
            [(align_left(about, width), style)],
        ]
        each = width // max(len(pictures), 1)
        for y in range(height - _HEAD_ROWS):
            row: Row = []
            for picture in pictures:
                cells = picture.rows[y] if y < len(picture.rows) else []
                used = sum(_width(text) for text, _ in cells)
                row += [*cells, (" " * max(each - used, 0), "")]
            rows.append([*row, (" " * (width - each * len(pictures)), "")])
        return rows

    def _head(self) -> Row:
        layout = self._layout
        parts = [f"{len(self._counts)}"] if self._counts else []
        if layout.pages > 1 and not self.is_full:
            parts.append(f"page {layout.page + 1} of {layout.pages}")
        if self.is_linked:
            parts.append("linked")
        return [(self.title, "focus" if self.has_focus else "dim"), (f"  {' · '.join(parts)}", "dim")]

    def _send(self) -> None:
        """Send images to the terminal: sixels at their position; kitty's once, before their cells."""
        app: App[Any] = self.app
        driver = app._driver
        if driver is None or not self.is_on_screen or app.screen is not self.screen:
            return
        x, y = self.content_region.offset
        for placed in self._placed:
            if self._graphics == "sixel":
                cursor = f"\x1b[{y + placed.y + 1};{x + placed.x + 1}H"
                driver.write(f"\x1b7{cursor}{placed.picture.sequence}\x1b8")
            else:
                driver.write(placed.picture.sequence)
                placed.picture.sequence = ""
        driver.flush()

    # -- what keys and mouse do

    def action_scrub(self, records: int) -> None:
        """Show a later or an earlier step; of all names, if they are linked."""
        if self._focused is not None:
            self._focused.scrub(records)
            self._follow_focused()

    def _follow_focused(self) -> None:
        focused = self._focused
        if self.is_linked and focused is not None and focused.record is not None:
            self._linked_step = focused.record.step
            for series in self._series.values() if self._linked_step is not None else ():
                if series is not focused and self._linked_step is not None:
                    series.to_step(self._linked_step)
        self._show_images()

    def toggle_link(self) -> None:
        """Link the steps of all names, or no longer."""
        self.is_linked = not self.is_linked
        self._follow_focused()

    def toggle_graphics(self) -> None:
        """Show images as half blocks, or as well as the terminal can."""
        self._graphics = self._best if self._graphics == "blocks" else "blocks"
        self.fit_size()

    def set_size(self, columns: int | None = None, rows: int | None = None) -> None:
        """Change the number of columns or rows; without any, both to the usual ones."""
        usual = self._usual_size if columns is rows is None else (self._layout.columns, self._layout.rows)
        self._layout.columns, self._layout.rows = columns or usual[0], rows or usual[1]
        self.fit_size()

    def set_usual_size(self, columns: int, rows: int) -> None:
        """Set the numbers of columns and rows that the grid has without changes."""
        if (columns, rows) != self._usual_size:
            self._usual_size = (columns, rows)
            self._layout.columns, self._layout.rows = columns, rows

    def set_filter(self, pattern: str) -> None:
        """Do nothing: this pane has no filter."""

    def move(self, right: int, down: int) -> None:
        """Move the focus to another name."""
        self._layout.move(right + down if self.is_full else right, 0 if self.is_full else down)
        self.fit_size()

    def turn(self, pages: int) -> None:
        """Show another page of names."""
        if self.is_full:
            self._layout.move(pages, 0)
        else:
            self._layout.turn(pages)
        self.fit_size()

    def to_end(self, last: bool) -> None:
        """Show the first or the last step."""
        if self._focused is not None:
            self._focused.to_end(last)
            self._follow_focused()

    def fit_size(self) -> None:
        """Draw the images again in the present size."""
        self.redraw()
        if self._counts:
            self._show_images()

    def on_click(self, event: events.Click) -> None:
        """Focus the clicked image."""
        index = None if self.is_full else self._layout.at(event.x, event.y - 1)
        if index is not None and event.button == 1:
            self._layout.focus = index
            self.redraw()


def _width(text: str) -> int:
    """Return the cells of a row of an image. Kitty's placeholders have marks, which take none."""
    return text.count(PLACEHOLDER) or len(text)
