"""Whether this is a Mac with Apple silicon: the look that costs nothing elsewhere."""

from __future__ import annotations

import os
import sys

from runvitals.collectors.base import Absent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.collectors.base import Collector, Scope


def probe(scope: Scope) -> Collector:
    """The GPU, the Neural Engine and the power meters of this Mac. Absent on every other machine."""
    machine = os.uname().machine if hasattr(os, "uname") else ""
    reason = missing(sys.platform, machine)
    if reason is not None:
        raise Absent(reason)
    from runvitals.collectors.apple.collector import open_mac

    return open_mac(scope)


def missing(platform: str, machine: str) -> str | None:
    """Why there is nothing of Apple's to measure here, or None where there is.

    Args:
        platform: as in ``sys.platform``.
        machine: what the running program is built for, as in ``os.uname()``.

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
