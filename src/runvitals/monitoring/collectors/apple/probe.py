"""The probe for Macs with Apple silicon: a cheap check that imports nothing else on other machines."""

from __future__ import annotations

import os
import sys

from runvitals.monitoring.collectors.base import Absent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.monitoring.collectors.base import Collector, Scope


def probe(scope: Scope) -> Collector:
    """Return the collector of this Mac's GPU, Neural Engine and power meters.

    Raises:
        Absent: this is not a Mac with Apple silicon.
    """
    machine = os.uname().machine if hasattr(os, "uname") else ""
    reason = missing(sys.platform, machine)
    if reason is not None:
        raise Absent(reason)
    from runvitals.monitoring.collectors.apple.collector import open_mac

    return open_mac(scope)


def missing(platform: str, machine: str) -> str | None:
    """Why this machine is not supported, or None if it is.

    Args:
        platform: as in ``sys.platform``.
        machine: the architecture of the running Python, as in ``os.uname()``.

    Example:
        >>> missing("linux", "aarch64")
        'no Mac: this system is linux'
    """
    if platform != "darwin":
        return f"no Mac: this system is {platform}"
    if machine != "arm64":
        return (
            f"this Python is built for {machine}: on a Mac with Apple silicon, use one that is built for "
            "arm64; Macs with Intel processors are not measured"
        )
    return None
