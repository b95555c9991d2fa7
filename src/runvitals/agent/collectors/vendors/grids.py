"""Deprecated name of `runvitals.agent.collectors.vendors.text_tables`, which packages with a vendor may import."""

from __future__ import annotations

import warnings

from runvitals.agent.collectors.vendors.text_tables import columns, grid

__all__ = ["columns", "grid"]

warnings.warn(
    "runvitals.agent.collectors.vendors.grids has moved to runvitals.agent.collectors.vendors.text_tables",
    DeprecationWarning,
    stacklevel=2,
)
