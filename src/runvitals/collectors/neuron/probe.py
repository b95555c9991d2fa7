"""Whether there is an AWS Neuron device: the look that costs nothing where there is none."""

from __future__ import annotations

import os

from runvitals.collectors.base import Absent
from runvitals.collectors.neuron.locations import BIN
from runvitals.collectors.plumbing.executables import find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.collectors.base import Scope
    from runvitals.collectors.neuron.collector import Trainium

SYSFS = "/sys/devices/virtual/neuron_device"


def probe(scope: Scope) -> Trainium:
    """The devices of this instance. Absent, with the remedy, where there is neither driver nor program.

    Raises:
        Absent: as said.
    """
    monitor = find("neuron-monitor", BIN + "neuron-monitor", scope.path(BIN + "neuron-monitor"))
    if monitor is None and not _nodes(scope) and not os.path.isdir(scope.path(SYSFS)):
        raise Absent(
            "no AWS Neuron device: there is no /dev/neuron*, the driver shows none under "
            f"{SYSFS}, and no neuron-monitor is on PATH or in {BIN[:-1]}"
        )
    from runvitals.collectors.neuron.collector import open_trainium

    return open_trainium(scope, monitor)


def _nodes(scope: Scope) -> bool:
    try:
        names = os.listdir(scope.path("/dev"))
    except OSError:  # a tree of files in the place of a machine
        return False
    return any(name.startswith("neuron") and name[6:].isdigit() for name in names)
