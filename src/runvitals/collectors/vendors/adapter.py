"""The public names of `runvitals.monitoring.collectors.vendors.adapter`."""

from __future__ import annotations

import warnings

from runvitals.monitoring.collectors.vendors import devices
from runvitals.monitoring.collectors.vendors.adapter import Vendor, watch
from runvitals.monitoring.collectors.vendors.devices import Reading

__all__ = ["Reading", "Vendor", "watch"]


def __getattr__(name: str) -> str:
    """Keys that packages with a vendor may still import from here."""
    if name not in ("LIMIT", "POWER", "USED"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(
        f"{name} has moved to runvitals.collectors.vendors.devices", DeprecationWarning, stacklevel=2
    )
    key: str = getattr(devices, name)
    return key
