"""Detect sources that few machines have, before their modules are imported, which take 0.03 MB of memory."""

from __future__ import annotations

import os

from runvitals.monitoring.collectors.base import Absent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.monitoring.collectors.base import Collector, Scope


def infiniband(scope: Scope) -> Collector:
    """Load the collector only where the kernel has InfiniBand."""
    _require_folder(scope.path("/sys/class/infiniband"))
    from runvitals.monitoring.collectors.host.infiniband import probe

    return probe(scope)


def energy(scope: Scope) -> Collector:
    """Load the collector only where the kernel has power capping."""
    _require_folder(scope.path("/sys/class/powercap"))
    from runvitals.monitoring.collectors.host.energy import probe

    return probe(scope)


def _require_folder(folder: str) -> None:
    try:
        os.listdir(folder)
    except OSError as error:
        raise Absent(f"{folder} cannot be listed: {error.strerror}") from error
