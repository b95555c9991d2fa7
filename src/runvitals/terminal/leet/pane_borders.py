"""The borders between panes, which the mouse drags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Literal, NamedTuple

from textual.widget import Widget

LEAST, MOST = 0.05, 0.9
"""The shares of its container that a pane may have."""
Edge = Literal["left", "right", "top"]


class Border(NamedTuple):
    """A border: the pane whose size it changes, and the edge of the pane that the mouse drags.

    The top edge is the row with the title of the pane.
    """

    pane: Widget
    edge: Edge

    @property
    def name(self) -> str:
        """The key of its size in the saved layout."""
        return f"{self.pane.id} {'height' if self.edge == 'top' else 'width'}"

    def has(self, x: int, y: int) -> bool:
        """Return whether a cell of the screen is on the border."""
        region = self.pane.region
        if not region.area:
            return False
        if self.edge == "top":
            return y == region.y and region.x <= x < region.right
        at = region.x if self.edge == "left" else region.right
        return at - 1 <= x <= at and region.y <= y < region.bottom

    def share_at(self, x: int, y: int) -> float:
        """Return the share of its container that the pane has if the border is dragged to a cell."""
        region, container = self.pane.region, self.pane.parent
        assert isinstance(container, Widget)
        if self.edge == "top":
            size, total = region.bottom - y, container.size.height
        else:
            size = region.right - x if self.edge == "left" else x + 1 - region.x
            total = container.size.width
        # Half a cell more: Textual rounds down.
        return min(max((size + 0.5) / max(total, 1), LEAST), MOST)


class PaneBorders:
    """The borders of a screen, and the sizes that the user gave the panes.

    Example:
        >>> borders = PaneBorders()
        >>> borders.set_borders([Border(overview, "right")])
        >>> borders.begin(31, 5), borders.drag(48, 5)
        (True, True)
        >>> borders.state()
        {'overview width': 0.3536}
    """

    def __init__(self) -> None:
        self._borders: Sequence[Border] = ()
        self._dragged: Border | None = None
        self._shares: dict[str, float] = {}
        self._full: Widget | None = None

    def set_borders(self, borders: Sequence[Border]) -> None:
        """Change which borders there are, as another layout needs it. Panes keep their sizes."""
        for border in self._borders:
            _set_size(border, None)
        self._borders = borders
        self.apply()

    def begin(self, x: int, y: int) -> bool:
        """Begin to drag the border at a cell of the screen; return whether there is one."""
        self._dragged = next((border for border in self._borders if border.has(x, y)), None)
        return self._dragged is not None

    def drag(self, x: int, y: int) -> bool:
        """Move the dragged border to a cell; return whether one is dragged."""
        if self._dragged is None:
            return False
        share = round(self._dragged.share_at(x, y), 4)
        if self._shares.get(self._dragged.name) != share:
            self._shares[self._dragged.name] = share
            _set_size(self._dragged, share)
        return True

    def end(self) -> None:
        """Stop dragging; the border stays where it is."""
        self._dragged = None

    def set_full(self, pane: Widget | None) -> None:
        """Set the pane that fills the screen and ignores its own size; None for no such pane."""
        self._full = pane
        self.apply()

    def apply(self) -> None:
        """Give the panes their sizes."""
        for border in self._borders:
            _set_size(border, None if border.pane is self._full else self._shares.get(border.name))

    def reset(self) -> None:
        """Give all panes their usual sizes."""
        self._shares.clear()
        self.apply()

    def state(self) -> dict[str, float]:
        """Return the sizes, for JSON."""
        return dict(self._shares)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Set sizes that were kept. What is invalid is left out."""
        for name, share in state.items():
            if isinstance(share, int | float) and isfinite(share) and LEAST <= share <= MOST:
                self._shares[name] = float(share)
        self.apply()


def _set_size(border: Border, share: float | None) -> None:
    """Set a share of the container, or the size of the style sheet."""
    size = None if share is None else f"{share:.2%}"
    if border.edge == "top":
        border.pane.styles.height = size
    else:
        border.pane.styles.width = size
