"""Which vendors' accelerators are here: the cheap question before a vendor's file is even imported.

All of them together cost a machine without any one scan of its PCI devices.

Keys `gpu.{i}.…` number the devices of all vendors in one row. On a machine with several vendors the order is
that of `ORDER`: NVIDIA's and AMD's devices keep the numbers they have alone, and each other vendor's numbers
begin after as many as PCI shows of the vendors before it. On a machine with one vendor, numbers are the
tool's own.
"""

from __future__ import annotations

import os
import sys

from runvitals.collectors.base import Absent
from runvitals.collectors.pci import ACCELERATOR, COPROCESSOR, DISPLAY, Card, cards

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.collectors.base import Collector, Scope

_ANY = (DISPLAY, COPROCESSOR, ACCELERATOR)


class Door:
    """A vendor: how its accelerators are noticed, and the probe that is asked then.

    Args:
        name: of the source, and of the module beside this file.
        title: for people.
        vendor_id: PCI vendor in hexadecimal, "" where it is not on PCI.
        classes: PCI base classes of its accelerators.
        node: a file that only exists where they are, for machines whose PCI devices cannot be seen.
    """

    __slots__ = ("classes", "name", "node", "title", "vendor_id")

    def __init__(
        self, name: str, title: str, vendor_id: str, classes: tuple[str, ...] = _ANY, node: str = ""
    ) -> None:
        self.name = name
        self.title = title
        self.vendor_id = vendor_id
        self.classes = classes
        self.node = node

    def cards(self, scope: Scope) -> list[Card]:
        """Its accelerators on PCI, by address."""
        return [card for card in cards(scope).get(self.vendor_id, ()) if card.base_class in self.classes]

    def __call__(self, scope: Scope) -> Collector:
        """The probe. Absent where nothing of this vendor is here."""
        if not self.cards(scope) and not (self.node and os.path.exists(scope.path(self.node))):
            seen = [f"no PCI device of vendor {self.vendor_id}"] if self.vendor_id else []
            seen += [f"no {self.node}"] if self.node else []
            raise Absent(f"no {self.title} here: {', '.join(seen)}")
        module = f"runvitals.collectors.vendors.{self.name}"
        __import__(module)
        collector: Collector = sys.modules[module].probe(scope)
        return collector


nvidia = Door("nvidia", "NVIDIA GPU", "10de")
amd = Door("amd", "AMD GPU", "1002")
gaudi = Door("gaudi", "Intel Gaudi", "1da3", node="/dev/hl0")
ascend = Door("ascend", "Huawei Ascend NPU", "19e5", (ACCELERATOR,), node="/dev/davinci_manager")
cambricon = Door("cambricon", "Cambricon MLU", "cabc", node="/dev/cambricon_dev0")
moorethreads = Door("moorethreads", "Moore Threads GPU", "1ed5", node="/dev/mtgpu.0")
metax = Door("metax", "MetaX GPU", "9999", node="/dev/mxcd")
iluvatar = Door("iluvatar", "Iluvatar GPU", "1e3e", node="/dev/iluvatar0")
kunlunxin = Door("kunlunxin", "Kunlunxin XPU", "2057", node="/dev/xpu0")
hygon = Door("hygon", "Hygon DCU", "1d94", node="/dev/mkfd")
thead = Door("thead", "T-Head PPU", "1ded", node="/dev/alixpu_ppu0")
tenstorrent = Door("tenstorrent", "Tenstorrent card", "1e52", node="/dev/tenstorrent")
rebellions = Door("rebellions", "Rebellions NPU", "1eff", node="/dev/rbln0")
furiosa = Door("furiosa", "FuriosaAI NPU", "1ed2", node="/dev/rngd")
jetson = Door("jetson", "NVIDIA Jetson", "", node="/sys/class/devfreq")
intel = Door("intel", "Intel GPU", "8086", (DISPLAY,))
npu = Door("npu", "processor's NPU", "", node="/sys/class/accel/accel0")

ORDER = (
    nvidia, amd, gaudi, ascend, cambricon, moorethreads, metax, iluvatar, kunlunxin, hygon, thead,
    tenstorrent, rebellions, furiosa, jetson, intel, npu,
)  # fmt: skip


def first_index(scope: Scope, name: str) -> int:
    """The number of a vendor's first device in keys `gpu.{i}.…`; that of another package comes last.

    Example:
        >>> first_index(scope, "intel")  # beside two GPUs of NVIDIA
        2
    """
    count = 0
    for door in ORDER:
        if door.name == name:
            break
        count += len(door.cards(scope))
    return count
