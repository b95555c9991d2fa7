"""The probe for AWS Neuron devices: a cheap check that imports nothing else on machines without one."""

from __future__ import annotations

import os

from runvitals.monitoring.collectors.base import Absent
from runvitals.monitoring.collectors.plumbing.executables import find
from runvitals.monitoring.collectors.trainium.locations import BIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.monitoring.collectors.base import Scope
    from runvitals.monitoring.collectors.trainium.collector import Trainium

SYSFS = "/sys/devices/virtual/neuron_device"


def probe(scope: Scope) -> Trainium:
    """Return the collector of this instance's devices.

    Raises:
        Absent: there is neither a driver nor a program; the message says where it looked.
    """
    monitor = find("neuron-monitor", BIN + "neuron-monitor", scope.path(BIN + "neuron-monitor"))
    if monitor is None and not _nodes(scope) and not os.path.isdir(scope.path(SYSFS)):
        raise Absent(
            "no AWS Neuron device: there is no /dev/neuron*, the driver shows none under "
            f"{SYSFS}, and no neuron-monitor is on PATH or in {BIN[:-1]}"
        )
    from runvitals.monitoring.collectors.trainium.collector import open_trainium

    return open_trainium(scope, monitor)


def _nodes(scope: Scope) -> bool:
    try:
        names = os.listdir(scope.path("/dev"))
    except OSError:  # the host root has no /dev
        return False
    return any(name.startswith("neuron") and name[6:].isdigit() for name in names)
