"""Which vendors' accelerators are here: the cheap question before a vendor's file is even imported.

All of them together cost a machine without any one scan of its PCI devices.

Keys `gpu.{i}.…` number the devices of all vendors in one row, and `first_index` is the one place that knows
how: in the order of `ORDER`, NVIDIA first, each vendor's numbers begin after as many as there are devices of
the vendors before it, by PCI, by their driver or by their device files, whichever shows most. So a partition,
a second chip on a card, or a card that is hidden from PCI gets nobody into another's numbers; a card that no
driver serves leaves a gap. On a machine with one vendor, numbers are the tool's own.
"""

from __future__ import annotations

import os
import sys

from runvitals.collectors.base import Absent
from runvitals.collectors.plumbing.pci import ACCELERATOR, COPROCESSOR, DISPLAY, PciDevice, cards

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from runvitals.collectors.base import Collector, Scope

_ANY = (DISPLAY, COPROCESSOR, ACCELERATOR)


class VendorProbe:
    """A vendor: how its accelerators are noticed, and the probe that is asked then.

    Args:
        name: of the source, and of the module beside this file.
        title: for people.
        vendor_id: PCI vendor in hexadecimal, "" where it is not on PCI.
        classes: PCI base classes of its accelerators.
        node: a file that only exists where they are, for machines whose PCI devices cannot be seen.
        others: further such files.
        numbered: how the files of single devices begin, "/dev/hl" of /dev/hl0, /dev/hl1 …
        shown: how many devices the driver shows.
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
        """Its accelerators on PCI, by address."""
        return [card for card in cards(scope).get(self.vendor_id, ()) if card.base_class in self.classes]

    def count(self, scope: Scope) -> int:
        """How many devices it has here at most."""
        shown = self._shown(scope) if self._shown is not None else 0
        return max(len(self.cards(scope)), _files(scope.path(self._numbered)), shown)

    def __call__(self, scope: Scope) -> Collector:
        """The probe. Absent where nothing of this vendor is here."""
        if not self.cards(scope) and not any(os.path.exists(scope.path(node)) for node in self.nodes):
            seen = [f"no PCI device of vendor {self.vendor_id}"] if self.vendor_id else []
            seen += [f"no {node}" for node in self.nodes]
            raise Absent(f"no {self.title} here: {', '.join(seen)}")
        module = f"runvitals.collectors.vendors.{self.name}"
        __import__(module)
        collector: Collector = sys.modules[module].probe(scope)
        return collector


def _files(beginning: str) -> int:
    """How many files have a number behind a beginning: /dev/hl0, /dev/hl1 …"""
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
    """GPUs and their partitions, as far as they have files in sysfs or a place in ROCm's topology."""
    from runvitals.collectors.amd import driver, kfd

    return max(len(driver.card_names(scope.host_root)), len(kfd.find_nodes(scope.host_root)))


def _rockchip_npus(scope: Scope) -> int:
    """One, where a file of its driver is: a processor has one NPU, of one to three cores."""
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
npu = VendorProbe("npu", "processor's NPU", "", node="/sys/class/accel/accel0")

ORDER = (
    nvidia, amd, gaudi, ascend, cambricon, moorethreads, metax, iluvatar, kunlunxin, hygon, thead,
    tenstorrent, rebellions, furiosa, enflame, biren, qualcomm, jetson, rockchip, intel, npu,
)  # fmt: skip


def first_index(scope: Scope, name: str) -> int:
    """The number of a vendor's first device in keys `gpu.{i}.…`. One of whose devices nothing is seen before
    its tool answers begins behind all others; so does a source of another package.

    Example:
        >>> first_index(scope, "intel")  # beside two GPUs of NVIDIA
        2
    """
    counts = {door.name: door.count(scope) for door in ORDER}
    if not counts.get(name):
        return sum(counts.values())
    names = list(counts)
    return sum(counts[each] for each in names[: names.index(name)])
