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


def table(text: str) -> list[Row]:
    """Devices of a table like nvidia-smi's: two or three lines for each, under a header of as many.

    Columns go by the header, since they wander with versions. Rows have index, name, pci, temp, power, limit,
    memory.used, memory.total and utilization, as far as the table has them.
    """
    rows: list[Row] = []
    header: list[list[str]] = []
    body = False
    line_number = 0
    for line in text.splitlines():
        cells = cells_of(line)
        if not body:
            if set(line.strip()) <= set("|+=") and "=" in line and header:
                body = True
            elif any("bus-id" in cell.lower() for cell in cells) or (header and len(cells) == len(header[0])):
                header.append(cells)
            continue
        if len(cells) != len(header[0]):
            continue  # a ruler, or the list of processes
        first = cells[0].split()
        if first and first[0].isdigit() and ":" in cells[1]:
            rows.append(_first_line(header[0], cells))
            line_number = 0
        elif rows and line_number < len(header):
            rows[-1].update(_values(header[line_number], cells))
        line_number += 1
    return rows


def _first_line(header: Sequence[str], cells: Sequence[str]) -> Row:
    index, *words = cells[0].split()
    if words and ("Persistence-M" in header[0] or "Firmware" in header[0]):
        words.pop()
    name = " ".join(word for word in words if word != "/")
    return {"index": index, "name": name, "pci": cells[1].split()[0], **_values(header, cells)}


def _values(header: Sequence[str], cells: Sequence[str]) -> Row:
    row: Row = {}
    for head, cell in zip(header, cells, strict=True):
        cell = cell.replace("N/A", "NA")
        if "Temp" in head:
            row["temp"] = _ending_with("C", cell.split())
        if "Pwr" in head or "Power" in head:
            draw, slash, limit = cell.partition("/")
            row["power"] = _last_watts(draw)
            if slash:
                row["limit"] = _last_watts(limit.partition("W")[0] + "W") if "W" in limit else "NA"
        if "Memory-Usage" in head:
            used, _, total = cell.partition("/")
            row["memory.used"], row["memory.total"] = used.strip(), total.strip()
        if "Util" in head:
            row["utilization"] = _ending_with("%", cell.split())
    return row


def _ending_with(unit: str, words: Iterable[str]) -> str:
    return next((word for word in words if word.endswith(unit) and word[:1].isdigit()), "NA")


def _last_watts(text: str) -> str:
    """The quantity in watts at a text's end, or, where there is no "/", in it: "51C    71W", "106 W"."""
    words = text.replace(" W", "W").split()
    return next((word for word in reversed(words) if word.endswith("W") and word[:1].isdigit()), "NA")
