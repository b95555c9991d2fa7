"""Huawei Ascend: the table of `npu-smi info`.

It is the one command that tells of all NPUs at once: asking each of them for each reading would take dozens
of processes. It is slow on servers with many NPUs, so it is run every 5 s.
"""

from __future__ import annotations

from runvitals.collectors.vendors.adapter import POWER, TOTAL, USED, Reading, Smi, Vendor, watch
from runvitals.collectors.vendors.formats import cells_of, healthy, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from runvitals.collectors.base import Scope
    from runvitals.collectors.vendors.formats import Row


def rows(output: bytes) -> list[Row]:
    """A row for each chip: a card may have two. Two lines are a chip: that of its NPU, then its own.

    Rows in between that tell of alarms, and the processes at the end, are left out.
    """
    chips: list[Row] = []
    npu: Row | None = None
    text = text_of(output)
    if "NPU" not in text or "Bus-Id" not in text:
        raise ValueError(f"no table of NPUs in what was printed: {' '.join(text.split())[:80]!r}")
    for line in text.splitlines():
        if "Process id" in line:
            break
        cells = cells_of(line)
        words = cells[0].split() if len(cells) == 3 else []
        if not words or not words[0].isdigit():
            continue
        if npu is not None and _is_of_chip(words, cells[1]):
            chips.append({**npu, **_chip(words, cells)})
            npu = None
        elif len(words) > 1:
            npu = _npu(words, cells)
    _number(chips)
    return chips


def _is_of_chip(words: Sequence[str], second: str) -> bool:
    """Whether a line that follows an NPU's is its chip's: numbers, and an address where an NPU has its
    health. An NPU's name may be a number as well: "310".
    """
    return all(word.isdigit() for word in words) and (":" in second or second in ("NA", "N/A", "-", ""))


def _npu(words: Sequence[str], cells: Sequence[str]) -> Row:
    values = [*cells[2].split(), "", ""]
    return {
        "npu": int(words[0]),
        "name": " ".join(words[1:]),
        "health": healthy(cells[1]),
        "power": values[0],
        "temp": values[1],
    }


def _chip(words: Sequence[str], cells: Sequence[str]) -> Row:
    """AI core load, then used and total of the memory, then, on chips that have it, of the HBM. A chip with
    HBM tells 0 of 0 of the other.
    """
    load, *sizes = cells[2].replace("/", " ").split() or ["NA"]
    row: Row = {"chip": int(words[0]), "pci": cells[1], "load": load}
    if len(words) > 1:
        row["index"] = words[1]
    pairs = list(zip(sizes[::2], sizes[1::2], strict=False))
    if pairs:
        row["used"], row["total"] = pairs[-1] if pairs[-1][1] != "0" else pairs[0]
    return row


def _number(chips: list[Row]) -> None:
    """Without physical ids, an NPU's number is the device's if each has one chip, as in /dev/davinci{N}."""
    if all("index" in chip for chip in chips):
        return
    npus = [chip["npu"] for chip in chips]
    if len(set(npus)) == len(npus):
        for chip in chips:
            chip["index"] = str(chip["npu"])
        return
    for index, chip in enumerate(
        sorted(chips, key=lambda each: (str(each["npu"]).zfill(4), str(each["chip"])))
    ):
        chip["index"] = str(index)


ASCEND = Vendor(
    name="ascend",
    title="Huawei Ascend NPU",
    programs=("npu-smi",),
    folders=("/usr/local/sbin", "/usr/local/Ascend/driver/tools"),
    commands=(("info",),),
    every_s=5.0,
    timeout_s=20.0,
    rows=rows,
    readings=(
        Reading("gpu", "%", "load"),
        Reading(USED, "bytes", "used", bare="MiB"),
        Reading(TOTAL, "bytes", "total", bare="MiB"),
        Reading("temp", "°C", "temp"),
        Reading(POWER, "W", "power"),
        Reading("healthy", "1", "health"),
    ),
    identity={"index": ("index",), "name": ("name",), "pci": ("pci",)},
    missing={"powerPercent": "npu-smi tells no power limit"},
)


def probe(scope: Scope) -> Smi:
    return watch(scope, ASCEND)
