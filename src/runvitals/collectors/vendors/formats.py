"""The public names of `runvitals.monitoring.collectors.vendors.formats`."""

from __future__ import annotations

from runvitals.monitoring.collectors.vendors.formats import (
    commas,
    csv,
    flat,
    healthy,
    objects,
    text_of,
    tree,
    without_unknown,
)

__all__ = ["commas", "csv", "flat", "healthy", "objects", "text_of", "tree", "without_unknown"]
