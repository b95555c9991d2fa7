"""Deprecated name of `runvitals.collectors.vendors.text_tables`, which packages with a vendor may import."""

from __future__ import annotations

import warnings

from runvitals.collectors.vendors.text_tables import columns, grid

__all__ = ["columns", "grid"]

warnings.warn(
    "runvitals.collectors.vendors.grids has moved to runvitals.collectors.vendors.text_tables",
    DeprecationWarning,
    stacklevel=2,
)
