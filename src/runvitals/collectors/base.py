"""The public names of `runvitals.monitoring.collectors.base`."""

from __future__ import annotations

from runvitals.monitoring.collectors.base import (
    GIB,
    MIB,
    Absent,
    Every,
    PseudoFile,
    Scope,
    Tick,
    open_if_there,
    read_text,
)

__all__ = ["GIB", "MIB", "Absent", "Every", "PseudoFile", "Scope", "Tick", "open_if_there", "read_text"]
