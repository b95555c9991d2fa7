"""Huawei Ascend: the table of `npu-smi info`.

It is the only command that reports all NPUs in one call: reading each value of each NPU would take dozens of
processes. It is slow on servers with many NPUs, so it is called every 5 s.
"""

from __future__ import annotations

from runvitals.monitoring.collectors.vendors.adapter import Reading, Smi, Vendor, watch
from runvitals.monitoring.collectors.vendors.devices import POWER, TOTAL, USED
from runvitals.monitoring.collectors.vendors.formats import healthy, text_of, without_unknown
from runvitals.monitoring.collectors.vendors.text_tables import table_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from runvitals.monitoring.collectors.base import Scope
    from runvitals.monitoring.collectors.vendors.formats import Row


# The usual headings of the lines of an NPU and of its chip.
_NPU = ("npu name", "health", "power(w) temp(c) hugepages-usage(page)")
_CHIP = ("chip phy-id", "bus-id", "aicore(%) memory-usage(mb) hbm-usage(mb)")


def rows(output: bytes) -> list[Row]:
    """Return a row for each chip; a card may have two.

    Two lines describe a chip: that of its NPU, and its own.

    Rows in between with alarms, and the processes at the end, are left out.
    """
    chips: list[Row] = []
    npu: Row | None = None
    npu_heads: Sequence[str] = _NPU
    chip_heads: Sequence[str] = _CHIP
    text = text_of(output)
    if "NPU" not in text or "Bus-Id" not in text:
        raise ValueError(f"no table of NPUs in the output: {' '.join(text.split())[:80]!r}")
    for cells in table_lines(text):
        words = cells[0].split()
        if words[:1] == ["NPU"]:
            if any("process" in cell.lower() for cell in cells):
                break
            npu_heads = [cell.lower() for cell in cells]
        elif words[:1] == ["Chip"]:
            chip_heads = [cell.lower() for cell in cells]
        elif not words or not words[0].isdigit():
            continue
        elif npu is not None and len(cells) == len(chip_heads) and _is_of_chip(words, cells[1]):
            chips.append({**npu, **_chip(chip_heads, cells)})
            npu = None
        elif len(words) > 1 and len(cells) == len(npu_heads):
            npu = _npu(npu_heads, cells)
    _number(chips)
    return chips


def _is_of_chip(words: Sequence[str], second: str) -> bool:
    """Return whether a line is a chip's: numbers, and a PCI address in place of an NPU's health.

    The name of an NPU may be a number too: "310".
    """
    return all(word.isdigit() for word in words) and (":" in second or second in ("NA", "N/A", "-", ""))


def _npu(heads: Sequence[str], cells: Sequence[str]) -> Row:
    words = cells[0].split()
    values = _values(heads, _NPU, cells)
    return {
        "npu": int(words[0]),
        "name": " ".join(words[_title_index("name", heads[0].split()) :]),
        "health": healthy(cells[1]),
        "power": values.get("power", ""),
        "temp": values.get("temp", ""),
    }


def _chip(heads: Sequence[str], cells: Sequence[str]) -> Row:
    """Return a chip with HBM reports 0 of 0 for its other memory; one without may report 0 of 0 for HBM."""
    words = cells[0].split()
    values = _values(heads, _CHIP, cells)
    row: Row = {"chip": int(words[0]), "pci": cells[1], "load": values.get("aicore", "NA")}
    position = _title_index("phy-id", heads[0].split())
    if position < len(words):
        row["index"] = words[position]
    pairs = [values[name].partition("/") for name in ("hbm-usage", "memory-usage") if name in values]
    if pairs:
        row["used"], _, row["total"] = pairs[0] if pairs[0][2] != "0" else pairs[-1]
    return row


def _title_index(title: str, titles: Sequence[str]) -> int:
    return titles.index(title) if title in titles else 1


def _values(heads: Sequence[str], usual: Sequence[str], cells: Sequence[str]) -> dict[str, str]:
    """Return the values in the cells behind the second, by the names in their headings."""
    values: dict[str, str] = {}
    for number in range(2, len(cells)):
        parts = _parts(cells[number])
        names = heads[number].split()
        if len(names) != len(parts) and number < len(usual):
            names = usual[number].split()
        # If some are missing, those of the other kind, numbers or pairs, are still known.
        for kind in (False, True):
            titles = [name.partition("(")[0] for name in names if ("usage" in name) is kind]
            matching = [part for part in parts if ("/" in part) is kind]
            if len(titles) == len(matching):
                values |= zip(titles, matching, strict=True)
    return values


def _parts(cell: str) -> list[str]:
    """Return the words of a cell, with pairs of values as one word: "0 / 0" is "0/0"."""
    parts: list[str] = []
    for word in without_unknown(cell).replace("N/A", "NA").replace("/", " / ").split():
        if parts and (word == "/" or parts[-1].endswith("/")):
            parts[-1] += word
        else:
            parts.append(word)
    return parts


def _number(chips: list[Row]) -> None:
    """Number the chips.

    Without physical ids, an NPU's index is used if each has one chip, as in /dev/davinci{N}.
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
    """Watch the devices of this vendor."""
    return watch(scope, ASCEND)
