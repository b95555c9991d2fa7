"""The public names of `runvitals.monitoring.collectors.vendors.devices`."""

from __future__ import annotations

from runvitals.monitoring.collectors.vendors.devices import (
    LIMIT,
    POWER,
    POWER_SHARE,
    SHARE,
    TOTAL,
    USED,
    Reading,
)

__all__ = ["LIMIT", "POWER", "POWER_SHARE", "SHARE", "TOTAL", "USED", "Reading"]
