"""The base of the screens of a run and of the list of runs: panes about one run."""

from __future__ import annotations

from runvitals.terminal.leet.chart_grid import ChartGrid
from runvitals.terminal.leet.chart_screen import ChartScreen
from runvitals.terminal.leet.config import Config
from runvitals.terminal.leet.images.media_pane import MediaPane
from runvitals.terminal.leet.images.terminal_graphics import Graphics
from runvitals.terminal.leet.pane import GridPane
from runvitals.terminal.leet.system_grid import SystemGrid
from runvitals.terminal.leet.text_pane import TextPane


class RunPanesScreen(ChartScreen):
    """A screen with metrics, system metrics, images, overview and console.

    Args:
        graphics: the way to show images.
    """

    overview: TextPane
    system: SystemGrid
    media: MediaPane
    console: TextPane

    def __init__(self, graphics: Graphics) -> None:
        super().__init__()
        self._graphics = graphics

    @property
    def grid(self) -> ChartGrid:
        """The grid that keys about charts apply to."""
        return self.system if self.system.has_focus else self.metrics

    def apply_config(self, config: Config) -> None:
        """Use changed settings."""
        self.media.set_usual_size(config["media_columns"], config["media_rows"])

    # -- the full screen

    def toggle_full(self, pane: GridPane) -> None:
        """Show a part of a pane on the full screen, or all panes again."""
        has_part = pane.has_images if isinstance(pane, MediaPane) else self.grid.focused_chart is not None
        if has_part or pane.is_full:
            self._set_full(pane, not pane.is_full)

    def leave_full(self) -> bool:
        """Leave the full screen; return whether anything had it."""
        for pane in (self.metrics, self.system, self.media):
            if pane.is_full:
                self._set_full(pane, False)
                return True
        return False

    def _set_full(self, pane: GridPane, is_full: bool) -> None:
        pane.set_full(is_full)
        self.set_class(is_full, "full")
        self.set_class(is_full and pane is self.media, "media-full")
        pane.set_class(is_full, "full")
        self.borders.set_full(pane if is_full else None)
        pane.focus()

    # -- keys

    def reset_sizes(self) -> None:
        """Give all panes and grids their usual sizes."""
        self.borders.reset()
        for pane in (self.metrics, self.system, self.media):
            pane.set_size()

    def action_graphics(self) -> None:
        """Show images as half blocks, or as well as the terminal can."""
        if self._graphics == "blocks":
            self.message = "this terminal has half blocks only; the setting `images` can say otherwise"
            self.show_footer()
        else:
            self.media.toggle_graphics()

    def action_link(self) -> None:
        """Link the steps of all images, if they have the focus."""
        if self.media.has_focus:
            self.media.toggle_link()
        else:
            self.link_console()

    def link_console(self) -> None:
        """Link console and charts, where the screen can."""

    def action_filter(self) -> None:
        """Edit the filter of the console if it has the focus, else of the metrics."""
        self.edit_filter(self.console if self.console.has_focus else self.metrics)

    def action_clear(self) -> None:
        """Clear the filter of the console if it has the focus, else of the metrics."""
        (self.console if self.console.has_focus else self.metrics).set_filter("")

    def action_filter_system(self) -> None:
        """Edit the filter of system metrics."""
        self.edit_filter(self.system)

    def action_clear_system(self) -> None:
        """Clear the filter of system metrics."""
        self.system.set_filter("")

    def action_filter_overview(self) -> None:
        """Edit the filter of the overview."""
        self.edit_filter(self.overview)

    def action_clear_overview(self) -> None:
        """Clear the filter of the overview."""
        self.overview.set_filter("")
