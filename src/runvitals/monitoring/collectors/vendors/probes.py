"""Detect which vendors' accelerators a machine has, before a vendor's module is imported.

On a machine without accelerators, all probes together cost one scan of its PCI devices.

Keys `gpu.{i}.…` number the devices of all vendors consecutively. `first_index` defines how: in the order of
`ORDER`, NVIDIA first, a vendor's indices start after the number of devices of the vendors before it. That
number is the largest of those found on PCI, by the driver, and by device files. So a partition, a second chip
on a card, or a card hidden from PCI never leads to two devices with one index; a card without a driver leaves
a gap. On a machine with a single vendor, indices are those of the vendor's tool.
"""

from __future__ import annotations

import os
import sys

from runvitals.monitoring.collectors.base import Absent
from runvitals.monitoring.collectors.plumbing.pci import ACCELERATOR, COPROCESSOR, DISPLAY, PciDevice, cards

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from runvitals.monitoring.collectors.base import Collector, Scope

_ANY = (DISPLAY, COPROCESSOR, ACCELERATOR)


class VendorProbe:
    """The probe of a vendor: how its accelerators are detected, and the module to import then.

    Args:
        name: of the collector, and of its module in this package.
        title: for messages.
        vendor_id: PCI vendor in hexadecimal, "" if its devices are not on PCI.
        classes: PCI base classes of its accelerators.
        node: a file that exists only with such a device, for machines whose PCI devices are hidden.
        others: further such files.
        numbered: prefix of the files of single devices, "/dev/hl" for /dev/hl0, /dev/hl1 …
        shown: returns the number of devices that the driver lists.
    """

    __slots__ = ("_numbered", "_shown", "classes", "name", "nodes", "title", "vendor_id")

    def __init__(
        self,
        name: str,
        title: str,
        vendor_id: str,
        classes: tuple[str, ...] = _ANY,
        node: str = "",
        numbered: str = "",
        shown: Callable[[Scope], int] | None = None,
        others: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.title = title
        self.vendor_id = vendor_id
        self.classes = classes
        self.nodes = (node, *others) if node else others
        self._numbered = numbered or node.rstrip("0123456789")
        self._shown = shown

    def cards(self, scope: Scope) -> list[PciDevice]:
        """Return its accelerators on PCI, sorted by address."""
        return [card for card in cards(scope).get(self.vendor_id, ()) if card.base_class in self.classes]

    def count(self, scope: Scope) -> int:
        """Return an upper bound of the number of its devices."""
        listed_devices = self._shown(scope) if self._shown is not None else 0
        return max(len(self.cards(scope)), _files(scope.path(self._numbered)), listed_devices)

    def __call__(self, scope: Scope) -> Collector:
        """Run the probe. Raises `Absent` if this machine has no such device."""
        if not self.cards(scope) and not any(os.path.exists(scope.path(node)) for node in self.nodes):
            absences = [f"no PCI device of vendor {self.vendor_id}"] if self.vendor_id else []
            absences += [f"no {node}" for node in self.nodes]
            raise Absent(f"no {self.title} here: {', '.join(absences)}")
        module = f"runvitals.monitoring.collectors.vendors.{self.name}"
        __import__(module)
        collector: Collector = sys.modules[module].probe(scope)
        return collector


def _files(beginning: str) -> int:
    """Count the files whose names are a prefix and a number, such as /dev/hl0 and /dev/hl1."""
    folder, _, start = beginning.rpartition("/")
    names = _names(folder) if start else []
    return sum(name.startswith(start) and name[len(start) :].isdigit() for name in names)


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:  # no such driver
        return []


def _nvidia_gpus(scope: Scope) -> int:
    return len(_names(scope.path("/proc/driver/nvidia/gpus")))


def _amd_gpus(scope: Scope) -> int:
    """Return the number of GPUs and partitions in sysfs or in ROCm's topology."""
    from runvitals.monitoring.collectors.amd import driver, kfd

    return max(len(driver.card_names(scope.host_root)), len(kfd.find_nodes(scope.host_root)))


def _rockchip_npus(scope: Scope) -> int:
    """1 if a file of its driver exists: a processor has one NPU, with one to three cores."""
    folders = (scope.path("/sys/kernel/debug/rknpu"), scope.path("/proc/rknpu"))
    devices = _names(scope.path("/sys/class/devfreq"))
    return int(any(map(os.path.exists, folders)) or any(name.endswith(".npu") for name in devices))


nvidia = VendorProbe("nvidia", "NVIDIA GPU", "10de", shown=_nvidia_gpus)
amd = VendorProbe("amd", "AMD GPU", "1002", shown=_amd_gpus)
gaudi = VendorProbe("gaudi", "Intel Gaudi", "1da3", node="/dev/hl0")
ascend = VendorProbe(
    "ascend", "Huawei Ascend NPU", "19e5", (ACCELERATOR,), "/dev/davinci_manager", "/dev/davinci"
)
cambricon = VendorProbe("cambricon", "Cambricon MLU", "cabc", node="/dev/cambricon_dev0")
moorethreads = VendorProbe("moorethreads", "Moore Threads GPU", "1ed5", node="/dev/mtgpu.0")
metax = VendorProbe("metax", "MetaX GPU", "9999", node="/dev/mxcd")
iluvatar = VendorProbe("iluvatar", "Iluvatar GPU", "1e3e", node="/dev/iluvatar0")
kunlunxin = VendorProbe("kunlunxin", "Kunlunxin XPU", "2057", node="/dev/xpu0")
hygon = VendorProbe("hygon", "Hygon DCU", "1d94", node="/dev/mkfd")
thead = VendorProbe("thead", "T-Head PPU", "1ded", node="/dev/alixpu_ppu0")
tenstorrent = VendorProbe("tenstorrent", "Tenstorrent card", "1e52", node="/dev/tenstorrent")
rebellions = VendorProbe("rebellions", "Rebellions NPU", "1eff", node="/dev/rbln0")
furiosa = VendorProbe("furiosa", "FuriosaAI NPU", "1ed2", node="/dev/rngd")
enflame = VendorProbe("enflame", "Enflame GCU", "1e36", node="/dev/gcu0")
biren = VendorProbe("biren", "Biren GPU", "1ee0", node="/dev/biren/card_0")
# Radios and modems have the same maker.
qualcomm = VendorProbe("qualcomm", "Qualcomm Cloud AI", "17cb", (ACCELERATOR,))
jetson = VendorProbe("jetson", "NVIDIA Jetson", "", node="/sys/class/devfreq")
rockchip = VendorProbe(
    "rockchip", "Rockchip NPU", "", node="/sys/kernel/debug/rknpu", shown=_rockchip_npus,
    others=("/proc/rknpu", "/sys/class/devfreq"),
)  # fmt: skip
intel = VendorProbe("intel", "Intel GPU", "8086", (DISPLAY,))
npu = VendorProbe("npu", "NPU in the processor", "", node="/sys/class/accel/accel0")

ORDER = (
    nvidia, amd, gaudi, ascend, cambricon, moorethreads, metax, iluvatar, kunlunxin, hygon, thead,
    tenstorrent, rebellions, furiosa, enflame, biren, qualcomm, jetson, rockchip, intel, npu,
)  # fmt: skip


def first_index(scope: Scope, name: str) -> int:
    """Return the index of a vendor's first device in keys `gpu.{i}.…`.

    A vendor whose devices can only be detected by its tool comes after all others, and so does a collector of
    another package.

    Example:
        >>> first_index(scope, "intel")  # beside two GPUs of NVIDIA
        2
    """
    counts = {vendor.name: vendor.count(scope) for vendor in ORDER}
    if not counts.get(name):
        return sum(counts.values())
    names = list(counts)
    return sum(counts[each] for each in names[: names.index(name)])
