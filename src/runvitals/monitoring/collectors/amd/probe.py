"""The probe for AMD GPUs: a cheap check that imports nothing else on machines without one."""

from __future__ import annotations

from runvitals.monitoring.collectors.amd.driver import VENDOR, card_names
from runvitals.monitoring.collectors.amd.rocm_programs import find_rocm_program
from runvitals.monitoring.collectors.base import Absent
from runvitals.monitoring.collectors.plumbing import pci

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.monitoring.collectors.amd.collector import AmdGpus
    from runvitals.monitoring.collectors.base import Scope


def probe(scope: Scope) -> AmdGpus:
    """Return the collector of this machine's AMD GPUs.

    Raises:
        Absent: there is neither a driver nor a program for them; the text says how to fix that.
    """
    if (
        not card_names(scope.host_root)
        and not find_rocm_program("amd-smi")
        and not find_rocm_program("rocm-smi")
    ):
        addresses = ", ".join(card.address for card in pci.cards(scope).get(VENDOR, ()))
        if addresses:
            raise Absent(
                f"AMD card at {addresses} is not driven by amdgpu; load the driver with `modprobe amdgpu`"
            )
        raise Absent(
            "no AMD GPU: no card in /sys/class/drm is driven by amdgpu, "
            "and neither amd-smi nor rocm-smi is installed"
        )
    from runvitals.monitoring.collectors.amd.collector import open_gpus

    return open_gpus(scope)
