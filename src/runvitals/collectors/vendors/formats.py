"""What vendors' tools print, as rows: for each device a dictionary of the tool's own names and values.

Nested names are joined by dots. Values are texts, or what JSON has; `runvitals.collectors.quantity` makes
numbers of them.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Row = dict[str, object]


def text_of(output: bytes) -> str:
    """What a tool printed, as text; bytes that are no UTF-8 cost no reading."""
    return output.decode("utf-8", "replace")


def csv(text: str, names: Sequence[str] = (), key: str = "") -> list[Row]:
    """Rows of comma-separated values, in the tool's order. What is before the header or has another number of
    cells (warnings, a line that breaks off) is left out.

    Args:
        names: of the columns, where the tool prints no header.
        key: else a column that the header is recognised by; units in the header's brackets are left out.

    Example:
        >>> csv("index, memory.used [MiB]\\n0, 606 MiB\\n", key="index")
        [{'index': '0', 'memory.used': '606 MiB'}]
        >>> csv("0, 606 MiB\\n1, 5", ["index", "memory.used"])
        [{'index': '0', 'memory.used': '606 MiB'}, {'index': '1', 'memory.used': '5'}]
    """
    header = list(names)
    rows: list[Row] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if not header:
            plain = [cell.partition("[")[0].strip() for cell in cells]
            header = plain if key in plain else []
        elif len(cells) == len(header) and any(cells):
            rows.append(dict(zip(header, cells, strict=True)))
    return rows


def flat(value: object, prefix: str = "") -> Row:
    """A tree of JSON objects as one row. Names lose the blanks around them ("Power Draw "); lists stay.

    Example:
        >>> flat({"Index": "0", "Power Readings": {"Power Draw ": "96W"}})
        {'Index': '0', 'Power Readings.Power Draw': '96W'}
    """
    if not isinstance(value, dict):
        return {prefix: value}
    row: Row = {}
    for name, inner in value.items():
        row.update(flat(inner, f"{prefix}.{name.strip()}" if prefix else name.strip()))
    return row


def objects(value: object) -> list[Row]:
    """The JSON objects of a list, or the one there is, each as one row."""
    found = value if isinstance(value, list) else [value]
    return [flat(each) for each in found if isinstance(each, dict)]


def tree(text: str, start: str) -> list[Row]:
    """Devices of an indented tree of ``name : value`` lines. A line that begins with `start`, without an
    indent and a value, begins a device; what follows `start` is its "" entry.

    Example:
        >>> tree("XPU 0000:01:00.0\\n    Temperature\\n        Current : 46 C\\n", "XPU ")
        [{'': '0000:01:00.0', 'Temperature.Current': '46 C'}]
    """
    rows: list[Row] = []
    above: list[tuple[int, str]] = []
    for line in text.splitlines():
        name, colon, value = line.partition(" : ")
        indent, name = len(name) - len(name.lstrip()), name.strip()
        if not colon and not indent and line.startswith(start):
            rows.append({"": line[len(start) :].strip()})
            above = []
            continue
        if not rows or not name:
            continue
        while above and above[-1][0] >= indent:
            above.pop()
        if colon:
            rows[-1][".".join([*(title for _, title in above), name])] = value.strip()
        else:
            above.append((indent, name))
    return rows


def cells_of(line: str) -> list[str]:
    """The cells of one line of a table drawn with "|", [] of any other line."""
    line = line.strip()
    return [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []


# What the number of a device stands under, best first: a board may hold several devices.
_INDEX = (
    "gpu",
    "card",
    "aip",
    "xpu",
    "npu",
    "mlu",
    "hcu",
    "dcu",
    "ppu",
    "device",
    "dev",
    "id",
    "index",
    "board",
)


def table(text: str) -> list[Row]:
    """Devices of a table like nvidia-smi's: one to three lines for each, under a header of as many.

    Columns go by the words of the header, since they wander with versions. Rows have index, name, pci, temp,
    power, limit, memory.used, memory.total, utilization, fan, clock.sm and clock.memory, as far as the table
    has them.
    """
    rows: list[Row] = []
    header: list[list[str]] = []
    above: list[list[str]] = []
    line_number = 0
    for line in text.splitlines():
        cells = cells_of(line)
        if set(line.strip()) <= set("|+=") and "=" in line:
            if any(cell.lower().startswith("process") for each in above for cell in each):
                break
            header, above, line_number = _header(above) or header, [], 0
        elif not any(any(letter.isalnum() for letter in cell) for cell in cells):
            above, line_number = [], 0  # a ruler, or what is no table
        elif not header:
            above.append(cells)
        elif len(cells) != len(header[0]):
            above.append(cells)  # of the next table, perhaps
        elif line_number in (0, len(header)) and (row := _first_line(header[0], cells)):
            rows.append(row)
            line_number = 1
        elif rows and 0 < line_number < len(header):
            if _is_rest_of_name(header[0], cells):
                rows[-1]["name"] = f"{rows[-1].get('name', '')} {' '.join(cells).strip()}".strip()
                continue
            rows[-1].update(_values(header[line_number], cells))
            line_number += 1
    return rows


def _header(lines: Sequence[list[str]]) -> list[list[str]]:
    """The lines above a ruler that are a header: as many cells in each as in the last, and a device's number
    in the first.
    """
    found = [cells for cells in lines if len(cells) == len(lines[-1])]
    return found if found and _index_cell(found[0]) is not None else []


def _index_cell(heads: Sequence[str]) -> int | None:
    """Which cell of a device's first line begins with its number."""
    first = [(head.lower().split() or [""])[0] for head in heads]
    return next((first.index(word) for word in _INDEX if word in first), None)


def _first_line(heads: Sequence[str], cells: Sequence[str]) -> Row | None:
    """The row of a device that begins with this line; None of a line that is none's first."""
    numbered = _index_cell(heads)
    words = [] if numbered is None else cells[numbered].split()
    if not words or not words[0].isdigit():
        return None
    row: Row = {"index": words[0]}
    for head, cell in zip(heads, cells, strict=True):
        titles = head.lower().split()
        if "name" in titles:
            row["name"] = _name(titles, cell.split())
    return {**row, **_values(heads, cells)}


def _name(titles: Sequence[str], words: Sequence[str]) -> str:
    """A name of several words, between what stands before it in its cell and what stands behind it."""
    before = titles.index("name")
    behind = len(titles) - before - 1
    return " ".join(words[before : len(words) - behind])


def _is_rest_of_name(heads: Sequence[str], cells: Sequence[str]) -> bool:
    """Whether a line holds nothing but words under "Name": it was too long for the line above."""
    under = ["name" in head.lower().split() for head in heads]
    return all(bool(cell) == is_name for cell, is_name in zip(cells, under, strict=True)) and any(
        cell[:1].isalpha() and "NA" not in cell.replace("/", "").split() for cell in cells
    )


def _values(heads: Sequence[str], cells: Sequence[str]) -> Row:
    row: Row = {}
    for head, cell in zip(heads, cells, strict=True):
        titles = [title.lower().partition("(")[0] for title in head.split()]
        cell = cell.replace("N/A", "NA")
        words = _joined(cell.split())
        if any("bus" in title for title in titles):
            row.update({"pci": word for word in words if ":" in word})
        if "temp" in titles:
            row["temp"] = _ending_with("C", words)
        if any(title.startswith(("pwr", "power")) for title in titles):
            row.update(_power(cell))
        if any(title in ("memory-usage", "mem-usage", "memory") for title in titles):
            row.update(_memory(cell))
        if any(title.startswith("clock") for title in titles):
            row.update(_clocks(titles, words))
        row.update(_percentages(titles, words))
    return row


def _joined(words: Sequence[str]) -> list[str]:
    """Numbers with their units: "30 W" -> "30W", "32 °C" -> "32C"."""
    found: list[str] = []
    for word in words:
        word = word.replace("°", "").replace("℃", "C")
        if found and word in ("C", "W", "%", "MHz", "Mhz") and found[-1][-1:].isdigit():
            found[-1] += word
        else:
            found.append(word)
    return found


def _power(cell: str) -> Row:
    draw, slash, limit = cell.partition("/")
    row: Row = {"power": _last_watts(draw)}
    if slash:
        row["limit"] = _last_watts(limit.partition("W")[0] + "W") if "W" in limit else "NA"
    return row


def _memory(cell: str) -> Row:
    """Used and total; a unit behind the total alone is that of both."""
    used, slash, total = (part.strip() for part in cell.partition("/"))
    if not slash:
        return {"memory.used": used}
    unit = total.lstrip("0123456789. ").split()
    if unit and used.replace(".", "").isdigit():
        used = f"{used} {unit[0]}"
    return {"memory.used": used, "memory.total": total}


def _clocks(titles: Sequence[str], words: Sequence[str]) -> Row:
    """ "Clock-SM  Clock-Mem" above "500MHz  1600MHz"."""
    names = [title for title in titles if title.startswith("clock")]
    if len(names) != len(words):
        return {}
    kinds = ("memory" if "mem" in name else "sm" for name in names)
    return {f"clock.{kind}": word for kind, word in zip(kinds, words, strict=True)}


def _percentages(titles: Sequence[str], words: Sequence[str]) -> Row:
    """Load, and speed of the fan: what ends in "%", in the order of the header; one alone stands first."""
    names = ["fan" if title == "fan" else "utilization" for title in titles if _is_percentage(title)]
    shares = [word for word in words if word.endswith("%") and word[:1].isdigit()]
    if len(names) == 1:
        return {names[0]: shares[0] if shares else "NA"}
    return dict(zip(names, shares, strict=True)) if len(names) == len(shares) else dict.fromkeys(names, "NA")


def _is_percentage(title: str) -> bool:
    return title == "fan" or ("util" in title and "mem" not in title)


def _ending_with(unit: str, words: Iterable[str]) -> str:
    return next((word for word in words if word.endswith(unit) and word[:1].isdigit()), "NA")


def _last_watts(text: str) -> str:
    """The quantity in watts at a text's end, or, where there is no "/", in it: "51C    71W", "106 W"."""
    words = text.replace(" W", "W").split()
    return next((word for word in reversed(words) if word.endswith("W") and word[:1].isdigit()), "NA")
