"""Parsers of tables in vendors' output. The meaning of a cell is recognized by the heading of its column.

Columns change between releases. Some tools use one line per device, others two or three, and long cells
continue in the next line. So nothing depends on positions in characters.

In addition to each cell under its heading ("Memory(used/total)"), a row has the recognized values under
common names: index, name, pci, temp, power, limit, memory.used, memory.total, memory (a single size),
utilization, fan, clock.sm, clock.memory.
"""

from __future__ import annotations

from runvitals.monitoring.collectors.plumbing import pci
from runvitals.monitoring.collectors.plumbing.quantity import FACTORS, split
from runvitals.monitoring.collectors.vendors.formats import without_unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from runvitals.monitoring.collectors.vendors.formats import Row

    Lines = list[list[str]]

# No line of a table is longer. A line without an end is not joined for ever.
_WIDEST = 2000
_RULER = frozenset("|+-=*_~: ")
# Lines that some tools draw with other characters.
_DRAWN = {
    **dict.fromkeys(map(ord, "│┃║┆┊"), "|"),
    **dict.fromkeys(map(ord, "─━═┄┈"), "-"),
    **dict.fromkeys(map(ord, "┌┐└┘├┤┬┴┼┏┓┗┛┣┫┳┻╋╔╗╚╝╠╣╦╩╬╒╕╘╛╞╡╤╧╪╭╮╰╯┡┩╇"), "+"),
}
_BORDERS = "|*"
_NOTHING = ("-", "--")
_CELSIUS, _WATTS, _BYTES, _MHZ = FACTORS["°C"], FACTORS["W"], FACTORS["bytes"], FACTORS["MHz"]
_UNITS = {"%", *_CELSIUS, *_WATTS, *_BYTES, *_MHZ}
# Headings of values that are not those of the whole device.
_MEMORIES = ("mem", "hbm", "ram")
_NO_LOADS = (*_MEMORIES, "enc", "dec", "fb", "pci", "vpu", "cpu", "band")


def grid(text: str, numbered: Sequence[str]) -> list[Row]:
    r"""Devices of a table whose cells are separated by "|".

    Args:
        text: what the tool has printed.
        numbered: possible beginnings of the heading of the column with device indices, in lower case.

    Example:
        >>> grid("| NPU | Temp |\n+=====+======+\n| 0   | 38C  |\n", ["npu"])
        [{'NPU': '0', 'Temp': '38C', 'index': '0', 'temp': '38C'}]
    """
    rows: list[Row] = []
    headings: Lines = []
    last_column = 0
    for group in _groups(text.translate(_DRAWN)):
        for part in _parts(group, numbered):
            lines = part
            column = _column(part, numbered)
            if column is not None:
                last_column = column
                head, lines = _separate(part, last_column, numbered)
                headings = [] if _is_about_processes(head) else head
            if headings:
                rows += [
                    _row(headings, record, last_column) for record in _records(headings, lines, last_column)
                ]
    return rows


def columns(text: str, numbered: Sequence[str]) -> list[Row]:
    r"""Devices of a table without lines: a heading of single words, and the values below them.

    Lines with values under less than half of the headings are remarks.

    Example:
        >>> columns("HCU  Temp   Mode\n0    46.0C  Normal\n", ["hcu"])
        [{'HCU': '0', 'Temp': '46.0C', 'Mode': 'Normal', 'index': '0'}]
    """
    rows: list[Row] = []
    headings: list[tuple[int, str]] = []
    for line in text.splitlines():
        words = _locate_words(without_unknown(line.replace("*", " ")))
        first = words[0][1] if words else ""
        if first.lower() in numbered and len(words) > 1:
            headings = words
        elif headings and first.isdigit() and 2 * len(words) >= len(headings):
            cells = {
                heading.partition("(")[0]: _with_units(heading.lower(), [str(word)])[0]
                for heading, word in _under(headings, words).items()
            }
            rows.append({**cells, "index": first})
    return rows


def table_lines(text: str) -> Iterator[list[str]]:
    """Yield the cells of each line of a table, without its rulers."""
    for group in _groups(text.translate(_DRAWN)):
        yield from group


def cells_of(line: str) -> list[str]:
    """Return the cells of a line, [] if it has none. The outer borders may be missing."""
    line = line.strip()
    if "|" not in line and line[:1] != "*":
        return []
    start, end = line[:1] in _BORDERS, len(line) > 1 and line[-1] in _BORDERS
    return [cell.strip() for cell in line[start : len(line) - end].split("|")]


def _groups(text: str) -> Iterator[Lines]:
    """Yield the lines between two rulers."""
    group: Lines = []
    for line in _whole_lines(text):
        if _RULER.issuperset(line) and ("--" in line or "==" in line):
            if group:
                yield group
            group = []
        elif cells := cells_of(line):
            group.append(cells)
    if group:
        yield group


def _parts(group: Lines, numbered: Sequence[str]) -> Iterator[Lines]:
    """Cut a group before each repeated heading.

    Some tools print one for each device, or no ruler below the table of devices.
    """
    start = 0
    for number, cells in enumerate(group):
        column = _column([cells], numbered)
        if column is not None and any(_has_number(before, column) for before in group[start:number]):
            yield group[start:number]
            start = number
    yield group[start:]


def _separate(part: Lines, column: int, numbered: Sequence[str]) -> tuple[Lines, Lines]:
    """Return the lines of the heading, and the lines of devices that follow without a ruler."""
    width = len(next(cells for cells in part if _begins(cells, column, numbered)))
    lines = [cells for cells in part if len(cells) == width]
    end = next((number for number, cells in enumerate(lines) if _has_number(cells, column)), len(lines))
    return lines[:end], lines[end:]


def _whole_lines(text: str) -> Iterator[str]:
    """Yield the lines.

    A line that a narrow terminal has wrapped, so that its border is on the next line, is joined with that
    one.
    """
    pending = ""
    for line in text.splitlines():
        continues = line[:1] not in ("|", "+", "") and len(pending) < _WIDEST
        # Spaces after a border may be the rest of the line's width, or a wrapped cell.
        if pending and continues and (pending.rstrip()[-1:] != "|" or line.rstrip()[-1:] == "|"):
            line = pending + line
        elif pending:
            yield pending
        pending = ""
        if line[:1] == "|" and line[-1:] not in ("|", "+"):
            pending = line
        else:
            yield line
    if pending:
        yield pending


def _column(group: Lines, numbered: Sequence[str]) -> int | None:
    """Return the column of device indices, if a group is the heading of a table; None for other groups."""
    for cells in group:
        for column in range(len(cells) if len(cells) > 1 else 0):
            if _begins(cells, column, numbered):
                return column
    return None


def _begins(cells: Sequence[str], column: int, numbered: Sequence[str]) -> bool:
    heading = cells[column].lower().split() if column < len(cells) else []
    return len(cells) > 1 and bool(heading) and heading[0] in numbered


def _is_about_processes(group: Lines) -> bool:
    words = {word for cells in group for cell in cells for word in cell.lower().split()}
    return not words.isdisjoint(("pid", "process", "processes", "processes:"))


def _records(headings: Lines, group: Lines, column: int) -> Iterator[Lines]:
    """Yield the lines of each device: as many as the heading has, or more if cells continue."""
    lines = [cells for cells in group if len(cells) == len(headings[0])]
    starts: list[int] = []
    for number, cells in enumerate(lines):
        if _number(cells[column]) and (not starts or number - starts[-1] >= len(headings)):
            starts.append(number)
    # The index may be in the middle of the lines of its device.
    for start, end in zip([0, *starts[1:]], [*starts[1:], len(lines)], strict=True) if starts else ():
        yield lines[start:end]


def _has_number(cells: Sequence[str], column: int) -> bool:
    return column < len(cells) and bool(_number(cells[column]))


def _number(cell: str) -> str:
    """Return the device's index, "3" in "3  Name" and "npu3"; "" if the cell does not begin with one."""
    word = (cell.split() or [""])[0]
    digits = word.lstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ:-_")
    return digits if digits.isdigit() else ""


def _row(headings: Lines, record: Lines, column: int) -> Row:
    raw: Row = {}
    row: Row = _name(headings[0], record, column)
    if len(record) != len(headings):
        headings, record = [_join(headings)], [_join(record)]
    for head_cells, cells in zip(headings, record, strict=True):
        for number, (heading, cell) in enumerate(zip(head_cells, cells, strict=True)):
            if not heading:
                continue
            raw.setdefault(heading, cell)
            if number == column and "index" not in row:
                row["index"] = _number(cell)
            for name, value in _recognize(heading, cell).items():
                row.setdefault(name, value)
    return {**raw, **row}


def _join(lines: Lines) -> list[str]:
    return [" ".join(part for part in parts if part) for parts in zip(*lines, strict=True)]


def _name(headings: Sequence[str], record: Lines, column: int) -> Row:
    """Return the name in a device's first line.

    It stands between the index of the device or its board, and the mode that some tools put into the same
    cell. It may continue in lines below that contain nothing else.
    """
    for number, heading in enumerate(headings):
        titles, words = heading.lower().split(), record[0][number].split()
        if "name" not in titles:
            continue
        before = titles.index("name") if number == column or (words and words[0].isdigit()) else 0
        behind = len(titles) - titles.index("name") - 1
        words = [word for word in words[before : len(words) - behind] if word != "/"]
        words += [
            cells[number] for cells in record[1:] if [cell for cell in cells if cell] == [cells[number]]
        ]
        return {"name": " ".join(words)}
    return {}


def _recognize(heading: str, cell: str) -> Row:
    small = heading.lower().replace(" (", "(")
    words = _with_units(small, _words(cell))
    row: Row = {}
    address = next((word for word in cell.split() if pci.normal(word)), None)
    if address is not None:
        row["pci"] = address
    if _is_temperature(small):
        row["temp"] = _of_unit(_CELSIUS, words) or _at("temp", small, words)
    if "pwr" in small or "power" in small:
        row["power"], row["limit"] = _power(small, words)
    if any(_is_of_memory(title) for title in small.split()):
        row.update(_memory(small, words))
    if "clock" in small:
        row.update(_clocks(small, words))
    if _is_load(small):
        row["utilization"] = _per_cent("util", small, words)
    if any(title.partition("(")[0] == "fan" for title in small.split()):
        row["fan"] = _per_cent("fan", small, words)
    return {name: value for name, value in row.items() if value}


def _is_temperature(heading: str) -> bool:
    """Return whether a heading is a temperature of the device, not of its memory."""
    words = heading.split()
    return any(
        "temp" in word and not any(memory in word or before == memory for memory in (*_MEMORIES, "memory"))
        for before, word in zip(["", *words], words, strict=False)
    )


def _is_of_memory(title: str) -> bool:
    return any(memory in title for memory in _MEMORIES) and not title.startswith("vmem")


def _is_load(heading: str) -> bool:
    """Return whether a heading is the load of the device, not of its memory or of a single engine."""
    words = heading.split()
    for before, word in zip(["", *words], words, strict=False):
        if word in ("%gpu", "dused"):
            return True
        if "util" in word and not any(other in before + word for other in _NO_LOADS):
            return True
    return False


def _with_units(heading: str, words: Sequence[str]) -> list[str]:
    """Bare numbers with the units after their names in the heading.

    Example:
        >>> _with_units("temp(c) power(mw)", ["36", "45000"]), _with_units("memory(gb)", ["1.5", "/", "64"])
        (['36c', '45000mw'], ['1.5gb', '/', '64gb'])
    """
    if "(" not in heading:
        return list(words)
    units = [title.partition("(")[2].rstrip(")") for title in heading.split()]
    columns: list[int] = []  # of each word; "54 / 250" is one column
    for before, word in zip(["/", *words], words, strict=False):
        behind = columns[-1] if columns else 0
        columns.append(behind if "/" in (before, word) else behind + 1)
    known_units = {unit for unit in units if unit in _UNITS}
    if max(columns, default=0) == 0 and len(known_units) == 1:
        units = list(known_units)
    elif len(units) != max(columns, default=0) + 1:
        return list(words)
    return [
        word + units[position] if units[position] in _UNITS and _is_bare(word) else word
        for position, word in zip(columns, words, strict=True)
    ]


def _words(cell: str) -> list[str]:
    """Return the words of a cell: a number with its unit is one, "/" is one, and unknown values are "NA".

    Example:
        >>> _words("N/A  39 C  97W/ 150 W"), _words("0%  2MiB(16384MiB)")
        (['NA', '39C', '97W', '/', '150W'], ['0%', '2MiB', '/', '16384MiB'])
    """
    words: list[str] = []
    cell = without_unknown(cell).replace("N/A", "NA")
    for word in cell.replace("/", " / ").replace("(", " / ").replace(")", " ").split():
        if words and word.lower() in _UNITS and _is_bare(words[-1]):
            words[-1] += word
        else:
            words.append("NA" if word in _NOTHING else word)
    return words


def _is_bare(word: str) -> bool:
    parts = split(word)
    return parts is not None and not parts[1]


def _has_unit(word: str, units: Mapping[str, float]) -> bool:
    parts = split(word)
    return parts is not None and bool(parts[1]) and parts[1].lower() in units


def _of_unit(units: Mapping[str, float], words: Sequence[str]) -> str:
    return next((word for word in words if _has_unit(word, units)), "")


def _at(what: str, heading: str, words: Sequence[str]) -> str:
    """Return the bare number in a cell at the position of its name in the heading."""
    titles = heading.replace("/", " / ").split()
    position = next((position for position, word in enumerate(titles) if what in word), len(words))
    return words[position] if position < len(words) and _is_bare(words[position]) else ""


def _power(heading: str, words: Sequence[str]) -> tuple[str, str]:
    """Draw and limit: "87W / 600W", "105W  300W" under a heading with a cap, "51W"."""
    if any("temp" in title and ("pwr" in title or "power" in title) for title in heading.split()):
        return _of_unit(_WATTS, words) or _at("power", heading, words) or _at("pwr", heading, words), ""
    for position in range(1, len(words) - 1):
        pair = words[position - 1], words[position + 1]
        if words[position] == "/" and (
            any(_has_unit(word, _WATTS) for word in pair) or _are_bare(pair, heading)
        ):
            return pair
    watts = [word for word in words if word == "NA" or _has_unit(word, _WATTS)]
    if "cap" in heading or "limit" in heading:
        if len(watts) > 1:
            return watts[-2], watts[-1]
        alone = "".join(watts)
        return (alone, "") if "usage" in heading or "/" in heading else ("", alone)
    return _of_unit(_WATTS, words) or _at("power", heading, words) or _at("pwr", heading, words), ""


def _are_bare(pair: Sequence[str], heading: str) -> bool:
    """Return whether two cells are a pair, such as "Pwr:Usage/Cap(W)".

    Both are numbers, or one is and the other is unknown, and the heading is one for a pair, which may contain
    the unit.
    """
    numbers = [word for word in pair if _is_bare(word)]
    return bool(numbers) and all(_is_bare(word) or word == "NA" for word in pair) and "/" in heading


def _memory(heading: str, words: Sequence[str]) -> Row:
    """Used and total: "826/65536MiB", "0.0B / 15.7GiB", "2MiB(16384MiB)"; or a single size."""
    for position in range(1, len(words) - 1):
        used, total = words[position - 1], words[position + 1]
        if words[position] != "/":
            continue
        if _has_unit(total, _BYTES) or _has_unit(used, _BYTES) or _are_bare((used, total), heading):
            if _is_bare(used):
                used += total.lstrip("0123456789.")
            return {"memory.used": used, "memory.total": total}
    return {"memory": _of_unit(_BYTES, words)}


def _clocks(heading: str, words: Sequence[str]) -> Row:
    """Read "500MHz  1600MHz" under "Clock-SM  Clock-Mem"."""
    names = ["memory" if "mem" in title else "sm" for title in heading.split() if title.startswith("clock")]
    clocks = [word for word in words if word == "NA" or _has_unit(word, _MHZ)]
    if len(names) != len(clocks):
        return {}
    return {f"clock.{name}": clock for name, clock in zip(names, clocks, strict=True)}


def _per_cent(what: str, heading: str, words: Sequence[str]) -> str:
    """Return the percentage.

    If load and fan share a cell, the one at its position; if "NA" is there, it is unknown, and the percentage
    belongs to the other.
    """
    shares = [word for word in words if word == "NA" or word.endswith("%")]
    titles = [title for title in heading.split() if "util" in title or title == "fan"]
    if len(titles) == len(shares):
        return next((share for title, share in zip(titles, shares, strict=True) if what in title), "")
    return shares[0] if shares else _at(what, heading, words)


def _locate_words(line: str) -> list[tuple[int, str]]:
    """Return the words of a line with their positions."""
    words: list[tuple[int, str]] = []
    end = 0
    for word in line.split():
        start = line.index(word, end)
        end = start + len(word)
        words.append((start, word))
    return words


def _under(headings: Sequence[tuple[int, str]], words: Sequence[tuple[int, str]]) -> Row:
    """Return the word for each heading; if their numbers differ, the word that begins under it."""
    if len(headings) == len(words):
        return {heading: word for (_, heading), (_, word) in zip(headings, words, strict=True)}
    row: dict[str, object] = {}
    for start, word in words:
        heading = next((name for begin, name in reversed(headings) if begin <= start), headings[0][1])
        row[heading] = f"{row[heading]} {word}" if heading in row else word
    return row
