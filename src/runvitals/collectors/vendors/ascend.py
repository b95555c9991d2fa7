"""Huawei Ascend: the table of `npu-smi info`.

It is the only command that reports all NPUs in one call: reading each value of each NPU would take dozens of
processes. It is slow on servers with many NPUs, so it is called every 5 s.
"""

from __future__ import annotations

from runvitals.collectors.vendors.adapter import Reading, Smi, Vendor, watch
from runvitals.collectors.vendors.devices import POWER, TOTAL, USED
from runvitals.collectors.vendors.formats import cells_of, healthy, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runvitals.collectors.base import Scope
    from runvitals.collectors.vendors.formats import Row


# The usual heading of the third cell of an NPU's line, and of its chip's line.
_HEADS = ("power(w) temp(c) hugepages-usage(page)", "aicore(%) memory-usage(mb) hbm-usage(mb)")


def rows(output: bytes) -> list[Row]:
    """A row for each chip; a card may have two. Two lines describe a chip: that of its NPU, and its own.

    Rows in between with alarms, and the processes at the end, are left out.
    """
    chips: list[Row] = []
    npu: Row | None = None
    heads = list(_HEADS)
    text = text_of(output)
    if "NPU" not in text or "Bus-Id" not in text:
        raise ValueError(f"no table of NPUs in the output: {' '.join(text.split())[:80]!r}")
    for line in text.splitlines():
        if "Process id" in line:
            break
        cells = cells_of(line)
        if len(cells) != 3:
            continue
        words = cells[0].split()
        if words[:1] in (["NPU"], ["Chip"]):
            heads[words[0] == "Chip"] = cells[2].lower()
        elif not words or not words[0].isdigit():
            continue
        elif npu is not None and _is_of_chip(words, cells[1]):
            chips.append({**npu, **_chip(words, cells[1], _values(heads[1], _HEADS[1], cells[2]))})
            npu = None
        elif len(words) > 1:
            npu = _npu(words, cells[1], _values(heads[0], _HEADS[0], cells[2]))
    _number(chips)
    return chips


def _values(head: str, usual: str, cell: str) -> dict[str, str]:
    """The values in a cell, by the names in its heading, or by the usual names if their number differs."""
    parts: list[str] = []
    for word in cell.replace("/", " / ").split():
        if parts and (word == "/" or parts[-1].endswith("/")):
            parts[-1] += word
        else:
            parts.append(word)
    names = head.split() if len(head.split()) == len(parts) else usual.split()
    return {name.partition("(")[0]: part for name, part in zip(names, parts, strict=False)}


def _is_of_chip(words: Sequence[str], second: str) -> bool:
    """Whether a line after an NPU's is its chip's: numbers, and a PCI address in place of an NPU's health.
    The name of an NPU may be a number too: "310".
    """
    return all(word.isdigit() for word in words) and (":" in second or second in ("NA", "N/A", "-", ""))


def _npu(words: Sequence[str], health: str, values: Mapping[str, str]) -> Row:
    return {
        "npu": int(words[0]),
        "name": " ".join(words[1:]),
        "health": healthy(health),
        "power": values.get("power", ""),
        "temp": values.get("temp", ""),
    }


def _chip(words: Sequence[str], address: str, values: Mapping[str, str]) -> Row:
    """A chip with HBM reports 0 of 0 for its other memory; one without may report 0 of 0 for HBM."""
    row: Row = {"chip": int(words[0]), "pci": address, "load": values.get("aicore", "NA")}
    if len(words) > 1:
        row["index"] = words[1]
    pairs = [values[name].split("/") for name in ("hbm-usage", "memory-usage") if "/" in values.get(name, "")]
    if pairs:
        row["used"], row["total"] = pairs[0] if pairs[0][1] != "0" else pairs[-1]
    return row


def _number(chips: list[Row]) -> None:
    """Number the chips. Without physical ids, an NPU's index is used if each has one chip, as in
    /dev/davinci{N}.
    """
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
    missing={"powerPercent": "npu-smi reports no power limit"},
)


def probe(scope: Scope) -> Smi:
    return watch(scope, ASCEND)
