"""The public names of `runvitals.monitoring.collectors.vendors.text_tables`."""

from __future__ import annotations

from runvitals.monitoring.collectors.vendors.text_tables import cells_of, columns, grid, table_lines

__all__ = ["cells_of", "columns", "grid", "table_lines"]
