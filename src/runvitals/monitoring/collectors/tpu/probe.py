"""The probe for Google TPUs: a cheap check that imports nothing else on machines without one."""

from __future__ import annotations

import os

from runvitals.monitoring.collectors.base import Absent
from runvitals.monitoring.collectors.tpu.chips import find_chips

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.monitoring.collectors.base import Scope
    from runvitals.monitoring.collectors.tpu.collector import Tpu

# Set on machines with TPUs, also in containers, which may hide the PCI bus.
SIGNS = (
    "TPU_ACCELERATOR_TYPE",
    "TPU_WORKER_ID",
    "TPU_CHIPS_PER_HOST_BOUNDS",
    "TPU_VISIBLE_CHIPS",
    "TPU_RUNTIME_METRICS_PORTS",
)


def probe(scope: Scope) -> Tpu:
    """Return the TPUs of this host.

    Raises:
        Absent: no TPU was found; the message says what to do.
    """
    chips = find_chips(scope)
    if not chips and not any(os.environ.get(sign) for sign in SIGNS):
        remote = os.environ.get("TPU_NAME")
        if remote and remote != "local":
            raise Absent(
                f"TPU_NAME names {remote}, which is another machine: measure there, on the TPU VM itself"
            )
        raise Absent("no Google TPU: none on the PCI bus, no /dev/accel*, no TPU_* variable")
    from runvitals.monitoring.collectors.tpu.collector import Tpu

    return Tpu(scope, chips, os.environ)
