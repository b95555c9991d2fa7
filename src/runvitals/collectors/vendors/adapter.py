"""The public names of `runvitals.monitoring.collectors.vendors.adapter`."""

from __future__ import annotations

from runvitals.monitoring.collectors.vendors.adapter import Vendor, watch
from runvitals.monitoring.collectors.vendors.devices import Reading

__all__ = ["Reading", "Vendor", "watch"]
