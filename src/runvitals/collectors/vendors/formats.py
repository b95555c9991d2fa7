"""What vendors' tools print, as rows: for each device a dictionary of the tool's own names and values.

Nested names are joined by dots. Values are texts or JSON values; `runvitals.collectors.plumbing.quantity`
converts them to numbers.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    Row = dict[str, object]


def text_of(output: bytes) -> str:
    """What a tool printed, as text. Bytes that are no UTF-8, and colours for a terminal, cost no reading."""
    first, *others = output.decode("utf-8", "replace").split("\x1b")
    return first + "".join(_behind_escape(part) for part in others)


def _behind_escape(text: str) -> str:
    """What follows an escape sequence: "[31mred" and "]0;title\a", or a letter alone."""
    if text[:1] == "]":
        return text.partition("\a")[2]
    end = 1
    if text[:1] == "[":
        while end < len(text) and not "@" <= text[end] <= "~":
            end += 1
        end += 1
    return text[end:]


def csv(text: str, names: Sequence[str] = (), key: str = "") -> list[Row]:
    """Rows of comma-separated values, in the tool's order. What is before the header or has another number of
    cells (warnings, a line that breaks off) is left out, and so is a header nobody asked for.

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
        cells = commas(line, len(header))
        plain = [cell.partition("[")[0].strip() for cell in cells]
        if not header:
            header = plain if key in plain else []
        elif len(cells) == len(header) and any(cells) and plain != header:
            rows.append(dict(zip(header, cells, strict=True)))
    return rows


def commas(line: str, count: int) -> list[str]:
    """The cells of a line between commas, but for commas in quotes, and those without a blank behind them
    where only so there are as many cells as wanted: names and localised numbers have some.

    Example:
        >>> commas('0, "Acme, rev. 2", 54.00 W', 3), commas("0, 54,5 W, 61", 3)
        (['0', 'Acme, rev. 2', '54.00 W'], ['0', '54,5 W', '61'])
    """
    cells = [""]
    for number, part in enumerate(line.split('"')):
        first, *others = [part] if number % 2 else part.split(",")
        cells[-1] += first
        cells += others
    wider = line.split(", ")
    found = wider if len(cells) > count == len(wider) else cells
    return [cell.strip(' "') for cell in found]


_WELL = (
    "ok",
    "good",
    "normal",
    "healthy",
    "alive",
    "live",
    "online",
    "running",
    "active",
    "available",
    "ready",
    "true",
    "yes",
    "1",
    "1.0",
)
# What tools write for a text that they do not know.
UNKNOWN = ("", "-", "--", "n/a", "na", "none", "null", "unknown", "not supported", "not available")


def healthy(value: object) -> float | None:
    """What a word on a device's state means: 1 for a good one, 0 for any other, None where there is none.

    Example:
        >>> healthy("OK"), healthy("Alarm"), healthy("NA"), healthy(True), healthy(False)
        (1.0, 0.0, None, 1.0, 0.0)
    """
    word = str(value).strip(" []").lower()
    return None if word in UNKNOWN else float(word in _WELL)


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
