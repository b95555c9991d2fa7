"""The pane of images: those that a run logged under one name, by step."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

from textual.app import App

from runvitals.leet.braille import Row
from runvitals.leet.fitting_text import cut
from runvitals.leet.images.terminal_graphics import PLACEHOLDER, Graphics, cell_pixels
from runvitals.leet.pane import FocusablePane
from runvitals.leet.sources.run_source import RunSource
from runvitals.model.errors import UnknownRun
from runvitals.model.logged_media import LoggedMedia
from runvitals.model.media import IMAGE
from runvitals.terminal import inert

_MOST_SIDE_BY_SIDE = 4
_TALLEST = 60


class Placed(NamedTuple):
    """A sequence that draws an image at a cell of the pane."""

    x: int
    y: int
    sequence: str


class MediaPane(FocusablePane):
    """Images. Left and right change the step, up and down the name.

    Args:
        source: the run.
        graphics: how images are shown.
    """

    def __init__(self, source: RunSource, graphics: Graphics, *, id: str) -> None:
        super().__init__("Media", id=id)
        self._source = source
        self._graphics: Graphics = graphics
        self._best: Graphics = graphics
        self._keys: list[str] = []
        self._key = 0
        self._records: list[LoggedMedia] = []
        self._record = 0
        self._is_at_end = True
        self._count = 0
        self._sent = 0
        self._placed: list[Placed] = []
        self._drawn: list[list[Row]] = []

    # -- what is shown

    def update(self) -> None:
        """Read which images there are, and show the newest, or the one that was chosen."""
        keys = [key for key in self._source.media_keys() if key.kind == IMAGE]
        names = [key.key for key in keys]
        count = sum(key.count for key in keys)
        if names != self._keys or count != self._count:
            self._keys, self._count = names, count
            self._key = min(self._key, max(len(names) - 1, 0))
            self._load()

    @property
    def has_images(self) -> bool:
        """Whether the run logged any."""
        return bool(self._keys)

    @property
    def record(self) -> LoggedMedia | None:
        """The record that is shown."""
        return self._records[self._record] if self._records else None

    def _load(self) -> None:
        self.run_worker(self._read(), exclusive=True, group="media")

    async def _read(self) -> None:
        if not self._keys:
            return
        try:
            self._records = await asyncio.to_thread(self._source.media, self._keys[self._key])
        except (OSError, UnknownRun, ValueError) as error:
            self._records = []
            self.show([self._head(), [(f" the images cannot be read: {inert(error)}", "bad")]])
            return
        last = max(len(self._records) - 1, 0)
        self._record = last if self._is_at_end else min(self._record, last)
        await self._show_record()

    async def _show_record(self) -> None:
        record = self.record
        items = [] if record is None else record.items[:_MOST_SIDE_BY_SIDE]
        if items and self.size.width > 4 and self.size.height > 3:
            width = self.size.width // len(items)
            height = min(self.size.height - 2, _TALLEST)
            tasks = [asyncio.to_thread(self._picture, item, width - 1, height) for item in items]
            self._drawn = []
            self._placed = []
            for place, (rows, sequence) in enumerate(await asyncio.gather(*tasks)):
                self._drawn.append(rows)
                if sequence:
                    self._placed.append(Placed(place * width, 2, sequence))
        self.redraw()

    def _picture(self, item: Mapping[str, Any], width: int, height: int) -> tuple[list[Row], str]:
        """The rows of an item, and what is sent to the terminal beside them."""
        if not (item.get("sha256") or item.get("file")):
            return [[(cut(inert(item.get("error") or "no file"), width), "bad")]], ""
        # Only now, because they take 40 ms: most runs are looked at without images.
        from runvitals.leet.images import kitty
        from runvitals.leet.images.decoding import UnreadableImage, decode
        from runvitals.leet.images.half_blocks import rows_of
        from runvitals.leet.images.sixel import sixels

        cell_width, cell_height = cell_pixels() if self._graphics != "blocks" else (1, 2)
        try:
            image = decode(self._source.content(item), width * cell_width, height * cell_height)
        except (OSError, UnknownRun, ValueError, UnreadableImage) as error:
            return [[(cut(inert(error), width), "bad")]], ""
        columns = max(-(-image.width // cell_width), 1)
        rows = max(-(-image.height // cell_height), 1)
        if self._graphics == "blocks":
            return rows_of(image, self.palette.has_colours), ""
        if self._graphics == "sixel":
            return [[(" " * columns, "")]] * rows, sixels(image)
        self._sent += 1
        number = 1 + (id(self) + self._sent) % 0xFFFFFE
        return kitty.placeholders(number, columns, rows), kitty.transmission(image, number, columns, rows)

    def redraw(self) -> None:
        """Show what was read."""
        rows: list[Row] = [self._head(), self._caption()]
        width = self.size.width // max(len(self._drawn), 1)
        for y in range(max(map(len, self._drawn), default=0)):
            row: Row = []
            for cells in self._drawn:
                found = cells[y] if y < len(cells) else []
                used = sum(_width(text) for text, _ in found)
                row += [*found, (" " * max(width - used, 0), "")]
            rows.append(row)
        if not self._keys:
            rows = [self._head(), [("  no images yet", "dim")]]
        self.show(rows)
        if self._placed:
            self.call_after_refresh(self._send)

    def _send(self) -> None:
        """Send images to the terminal: sixels at their place, kitty's before the cells that show them."""
        app: App[Any] = self.app
        driver = app._driver
        if driver is None or not self.is_on_screen or app.screen is not self.screen:
            return
        left, top = self.content_region.offset
        for placed in self._placed:
            if self._graphics == "sixel":
                place = f"\x1b[{top + placed.y + 1};{left + placed.x + 1}H"
                driver.write(f"\x1b7{place}{placed.sequence}\x1b8")
            else:
                driver.write(placed.sequence)
        if self._graphics == "kitty":
            self._placed = []
        driver.flush()

    def _head(self) -> Row:
        parts = [f"{self._key + 1} of {len(self._keys)}"] if self._keys else []
        record = self.record
        if record is not None:
            step = "" if record.step is None else f"step {record.step:g} · "
            parts.append(f"{step}{self._record + 1} of {len(self._records)}")
            hidden = len(record.items) - _MOST_SIDE_BY_SIDE
            parts += [f"{hidden} more side by side"] if hidden > 0 else []
        style = "focus" if self.has_focus else "dim"
        return [(self.title, style), (f"  {' · '.join(parts)}", "dim")]

    def _caption(self) -> Row:
        record = self.record
        if record is None:
            return []
        captions = [str(item["caption"]) for item in record.items if item.get("caption")]
        return [(inert(record.key), "title"), (f"  {inert(' | '.join(captions))}", "dim")]

    # -- keys

    def toggle_graphics(self) -> None:
        """Show images as half blocks, or as well as the terminal can."""
        self._graphics = self._best if self._graphics == "blocks" else "blocks"
        self.resized()

    def set_filter(self, pattern: str) -> None:
        """This pane has no filter."""

    def move(self, right: int, down: int) -> None:
        """Show another step, or another name."""
        if down and self._keys:
            self._key = (self._key + down) % len(self._keys)
            self._is_at_end = True
            self._load()
        elif right:
            self._go(self._record + right)

    def turn(self, pages: int) -> None:
        """Show an image ten steps later or earlier."""
        self._go(self._record + 10 * pages)

    def to_end(self, last: bool) -> None:
        """Show the first or the last image."""
        self._go(len(self._records) if last else 0)

    def _go(self, place: int) -> None:
        end = max(len(self._records) - 1, 0)
        self._record = min(max(place, 0), end)
        self._is_at_end = self._record == end
        self.run_worker(self._show_record(), exclusive=True, group="media")

    def resized(self) -> None:
        if self._records:
            self.run_worker(self._show_record(), exclusive=True, group="media")
        else:
            self.redraw()


def _width(text: str) -> int:
    """The cells of a row of an image. Kitty's placeholders have marks, which take none."""
    return text.count(PLACEHOLDER) or len(text)
