"""Tables that vendors' tools draw for people, as rows; what a cell holds goes by the head of its column.

Columns wander, come and go with releases; some tools tell a device in one line, others in two or three, and
where a cell is full it goes on in the next line. So nothing here counts characters.

Beside each cell under its head ("Memory(used/total)") a row has, under names that are the same for all tools,
what was recognised: index, name, pci, temp, power, limit, memory.used, memory.total, memory (a size that is
alone), utilization, fan, clock.sm, clock.memory.
"""

from __future__ import annotations

from runvitals.collectors.plumbing import pci
from runvitals.collectors.plumbing.quantity import FACTORS, split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from runvitals.collectors.vendors.formats import Row

    Lines = list[list[str]]

# No line of a table is longer; one without an end is not put together for ever.
_WIDEST = 2000
_RULER = frozenset("|+-=*_~: ")
# Lines that some tools draw with characters of their own.
_DRAWN = {
    **dict.fromkeys(map(ord, "│┃║┆┊"), "|"),
    **dict.fromkeys(map(ord, "─━═┄┈"), "-"),
    **dict.fromkeys(map(ord, "┌┐└┘├┤┬┴┼┏┓┗┛┣┫┳┻╋╔╗╚╝╠╣╦╩╬╒╕╘╛╞╡╤╧╪╭╮╰╯┡┩╇"), "+"),
}
_BORDERS = "|*"
_NOTHING = ("N/A", "[N/A]", "NA", "-", "--")
_CELSIUS, _WATTS, _BYTES, _MHZ = FACTORS["°C"], FACTORS["W"], FACTORS["bytes"], FACTORS["MHz"]
_UNITS = {"%", *_CELSIUS, *_WATTS, *_BYTES, *_MHZ}
# What has a load, a temperature or a size of its own beside the device's.
_MEMORIES = ("mem", "hbm", "ram")
_NO_LOADS = (*_MEMORIES, "enc", "dec", "fb", "pci", "vpu", "cpu", "band")


def grid(text: str, numbered: Sequence[str]) -> list[Row]:
    """Devices of a table whose cells are parted by "|".

    Args:
        numbered: how the head of the column may begin that numbers the devices, in small letters.

    Example:
        >>> grid("| NPU | Temp |\\n+=====+======+\\n| 0   | 38C  |\\n", ["npu"])
        [{'NPU': '0', 'Temp': '38C', 'index': '0', 'temp': '38C'}]
    """
    rows: list[Row] = []
    heads: Lines = []
    place = 0
    for group in _groups(text.translate(_DRAWN)):
        found = _column(group, numbered)
        if found is not None:
            width = len(next(cells for cells in group if _begins(cells, found, numbered)))
            heads = [cells for cells in group if len(cells) == width]
            place = found
            if _is_about_processes(group):
                heads = []
        elif heads:
            rows += [_row(heads, record, place) for record in _records(heads, group, place)]
    return rows


def columns(text: str, numbered: Sequence[str]) -> list[Row]:
    """Devices of a table without lines: a head of single words, and below each what belongs to it.

    Example:
        >>> columns("HCU  Temp   Mode\\n0    46.0C  Normal\\n", ["hcu"])
        [{'HCU': '0', 'Temp': '46.0C', 'Mode': 'Normal', 'index': '0'}]
    """
    rows: list[Row] = []
    heads: list[tuple[int, str]] = []
    for line in text.splitlines():
        words = _placed(line.replace("*", " "))
        first = words[0][1] if words else ""
        if first.lower() in numbered and len(words) > 1:
            heads = words
        elif heads and first.isdigit():
            found = {
                head.partition("(")[0]: _with_units(head.lower(), [str(word)])[0]
                for head, word in _under(heads, words).items()
            }
            rows.append({**found, "index": first})
    return rows


def cells_of(line: str) -> list[str]:
    """The cells of a line, [] of one that has none. The outer borders may be missing."""
    line = line.strip()
    if "|" not in line and line[:1] != "*":
        return []
    start, end = line[:1] in _BORDERS, len(line) > 1 and line[-1] in _BORDERS
    return [cell.strip() for cell in line[start : len(line) - end].split("|")]


def _groups(text: str) -> Iterator[Lines]:
    """The lines between two rulers."""
    group: Lines = []
    for line in _whole_lines(text):
        if not line.strip() or (_RULER.issuperset(line) and ("--" in line or "==" in line)):
            if group:
                yield group
            group = []
        elif cells := cells_of(line):
            group.append(cells)
    if group:
        yield group


def _whole_lines(text: str) -> Iterator[str]:
    """Lines; one that a narrow terminal has broken, so that its border is on the next, is put together."""
    begun = ""
    for line in text.splitlines():
        goes_on = line[:1] not in ("|", "+", "") and len(begun) < _WIDEST
        # Blanks behind a border may be the rest of the line's width, or a cell that is broken there.
        if begun and goes_on and (begun.rstrip()[-1:] != "|" or line.rstrip()[-1:] == "|"):
            line = begun + line
        elif begun:
            yield begun
        begun = ""
        if line[:1] == "|" and line[-1:] not in ("|", "+"):
            begun = line
        else:
            yield line
    if begun:
        yield begun


def _column(group: Lines, numbered: Sequence[str]) -> int | None:
    """Where the devices' numbers are, if a group is the head of a table; None of any other group."""
    for cells in group:
        for place in range(len(cells) if len(cells) > 1 else 0):
            if _begins(cells, place, numbered):
                return place
    return None


def _begins(cells: Sequence[str], place: int, numbered: Sequence[str]) -> bool:
    head = cells[place].lower().split() if place < len(cells) else []
    return len(cells) > 1 and bool(head) and head[0] in numbered


def _is_about_processes(group: Lines) -> bool:
    words = {word for cells in group for cell in cells for word in cell.lower().split()}
    return not words.isdisjoint(("pid", "process", "processes", "processes:"))


def _records(heads: Lines, group: Lines, place: int) -> Iterator[Lines]:
    """The lines of each device. A device has as many as the head, or more where cells go on."""
    lines = [cells for cells in group if len(cells) == len(heads[0])]
    starts: list[int] = []
    for number, cells in enumerate(lines):
        if _number(cells[place]) and (not starts or number - starts[-1] >= len(heads)):
            starts.append(number)
    # A number may stand in the middle of the lines that its device takes.
    for start, end in zip([0, *starts[1:]], [*starts[1:], len(lines)], strict=True) if starts else ():
        yield lines[start:end]


def _number(cell: str) -> str:
    """The device's number, "3" of "3  Name" and of "npu3", "" where the cell begins with none."""
    word = (cell.split() or [""])[0]
    digits = word.lstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ:-_")
    return digits if digits.isdigit() else ""


def _row(heads: Lines, record: Lines, place: int) -> Row:
    raw: Row = {}
    row: Row = _name(heads[0], record, place)
    if len(record) != len(heads):
        heads, record = [_joined(heads)], [_joined(record)]
    for head_cells, cells in zip(heads, record, strict=True):
        for number, (head, cell) in enumerate(zip(head_cells, cells, strict=True)):
            if not head:
                continue
            raw.setdefault(head, cell)
            if number == place and "index" not in row:
                row["index"] = _number(cell)
            for name, value in _recognised(head, cell).items():
                row.setdefault(name, value)
    return {**raw, **row}


def _joined(lines: Lines) -> list[str]:
    return [" ".join(part for part in parts if part) for parts in zip(*lines, strict=True)]


def _name(heads: Sequence[str], record: Lines, place: int) -> Row:
    """The name in a device's first line: between its number, or that of its board, and the mode that some
    tools put into the same cell; and what goes on below, in lines that hold nothing else.
    """
    for number, head in enumerate(heads):
        titles, words = head.lower().split(), record[0][number].split()
        if "name" not in titles:
            continue
        before = titles.index("name") if number == place or (words and words[0].isdigit()) else 0
        behind = len(titles) - titles.index("name") - 1
        words = [word for word in words[before : len(words) - behind] if word != "/"]
        words += [
            cells[number] for cells in record[1:] if [cell for cell in cells if cell] == [cells[number]]
        ]
        return {"name": " ".join(words)}
    return {}


def _recognised(head: str, cell: str) -> Row:
    small = head.lower().replace(" (", "(")
    words = _with_units(small, _words(cell))
    row: Row = {}
    address = next((word for word in cell.split() if pci.normal(word)), None)
    if address is not None:
        row["pci"] = address
    if _tells_temperature(small):
        row["temp"] = _of_unit(_CELSIUS, words) or _at("temp", small, words)
    if "pwr" in small or "power" in small:
        row["power"], row["limit"] = _power(small, words)
    if any(_is_of_memory(title) for title in small.split()):
        row.update(_memory(small, words))
    if "clock" in small:
        row.update(_clocks(small, words))
    if _tells_load(small):
        row["utilization"] = _per_cent("util", small, words)
    if any(title.partition("(")[0] == "fan" for title in small.split()):
        row["fan"] = _per_cent("fan", small, words)
    return {name: value for name, value in row.items() if value}


def _tells_temperature(head: str) -> bool:
    """Whether a head is about how hot the device is, and not its memory."""
    words = head.split()
    return any(
        "temp" in word and not any(memory in word or before == memory for memory in (*_MEMORIES, "memory"))
        for before, word in zip(["", *words], words, strict=False)
    )


def _is_of_memory(title: str) -> bool:
    return any(memory in title for memory in _MEMORIES) and not title.startswith("vmem")


def _tells_load(head: str) -> bool:
    """Whether a head is about how busy the device is, and not its memory or an engine of it."""
    words = head.split()
    for before, word in zip(["", *words], words, strict=False):
        if word in ("%gpu", "dused"):
            return True
        if "util" in word and not any(other in before + word for other in _NO_LOADS):
            return True
    return False


def _with_units(head: str, words: Sequence[str]) -> list[str]:
    """Bare numbers with the units that stand behind their names in the head.

    Example:
        >>> _with_units("temp(c) power(mw)", ["36", "45000"]), _with_units("memory(gb)", ["1.5", "/", "64"])
        (['36c', '45000mw'], ['1.5gb', '/', '64gb'])
    """
    if "(" not in head:
        return list(words)
    units = [title.partition("(")[2].rstrip(")") for title in head.split()]
    places: list[int] = []  # of each word; "54 / 250" is in one
    for before, word in zip(["/", *words], words, strict=False):
        behind = places[-1] if places else 0
        places.append(behind if "/" in (before, word) else behind + 1)
    known = {unit for unit in units if unit in _UNITS}
    if max(places, default=0) == 0 and len(known) == 1:
        units = list(known)
    elif len(units) != max(places, default=0) + 1:
        return list(words)
    return [
        word + units[place] if units[place] in _UNITS and _is_bare(word) else word
        for place, word in zip(places, words, strict=True)
    ]


def _words(cell: str) -> list[str]:
    """The words of a cell: a number with its unit is one, "/" is one, and what stands for nothing is "NA".

    Example:
        >>> _words("N/A  39 C  97W/ 150 W"), _words("0%  2MiB(16384MiB)")
        (['NA', '39C', '97W', '/', '150W'], ['0%', '2MiB', '/', '16384MiB'])
    """
    for nothing in _NOTHING[:2]:
        cell = cell.replace(nothing, "NA")
    words: list[str] = []
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


def _at(what: str, head: str, words: Sequence[str]) -> str:
    """The bare number in a cell that stands where its name stands in the head."""
    titles = head.replace("/", " / ").split()
    place = next((place for place, word in enumerate(titles) if what in word), len(words))
    return words[place] if place < len(words) and _is_bare(words[place]) else ""


def _power(head: str, words: Sequence[str]) -> tuple[str, str]:
    """Draw and limit: "87W / 600W", "105W  300W" under a head that tells of a cap, "51W"."""
    if any("temp" in title and ("pwr" in title or "power" in title) for title in head.split()):
        return _of_unit(_WATTS, words) or _at("power", head, words) or _at("pwr", head, words), ""
    for place in range(1, len(words) - 1):
        pair = words[place - 1], words[place + 1]
        if words[place] == "/" and (any(_has_unit(word, _WATTS) for word in pair) or _are_bare(pair, head)):
            return pair
    watts = [word for word in words if word == "NA" or _has_unit(word, _WATTS)]
    if "cap" in head or "limit" in head:
        if len(watts) > 1:
            return watts[-2], watts[-1]
        alone = "".join(watts)
        return (alone, "") if "usage" in head or "/" in head else ("", alone)
    return _of_unit(_WATTS, words) or _at("power", head, words) or _at("pwr", head, words), ""


def _are_bare(pair: Sequence[str], head: str) -> bool:
    """Whether both are numbers, or one is and the other is not known, under a head that tells of such a pair;
    the unit may stand there: "Pwr:Usage/Cap(W)".
    """
    numbers = [word for word in pair if _is_bare(word)]
    return bool(numbers) and all(_is_bare(word) or word == "NA" for word in pair) and "/" in head


def _memory(head: str, words: Sequence[str]) -> Row:
    """Used and total: "826/65536MiB", "0.0B / 15.7GiB", "2MiB(16384MiB)"; or one size alone."""
    for place in range(1, len(words) - 1):
        used, total = words[place - 1], words[place + 1]
        if words[place] != "/":
            continue
        if _has_unit(total, _BYTES) or _has_unit(used, _BYTES) or _are_bare((used, total), head):
            if _is_bare(used):
                used += total.lstrip("0123456789.")
            return {"memory.used": used, "memory.total": total}
    return {"memory": _of_unit(_BYTES, words)}


def _clocks(head: str, words: Sequence[str]) -> Row:
    """ "500MHz  1600MHz" under "Clock-SM  Clock-Mem"."""
    names = ["memory" if "mem" in title else "sm" for title in head.split() if title.startswith("clock")]
    clocks = [word for word in words if word == "NA" or _has_unit(word, _MHZ)]
    if len(names) != len(clocks):
        return {}
    return {f"clock.{name}": clock for name, clock in zip(names, clocks, strict=True)}


def _per_cent(what: str, head: str, words: Sequence[str]) -> str:
    """The percentage; of load and fan in one cell that which stands in its order. Where "NA" comes before
    it, that is the answer, and the other is something else's.
    """
    shares = [word for word in words if word == "NA" or word.endswith("%")]
    titles = [title for title in head.split() if "util" in title or title == "fan"]
    if len(titles) == len(shares):
        return next((share for title, share in zip(titles, shares, strict=True) if what in title), "")
    return shares[0] if shares else _at(what, head, words)


def _placed(line: str) -> list[tuple[int, str]]:
    """The words of a line, each with where it begins."""
    words: list[tuple[int, str]] = []
    end = 0
    for word in line.split():
        start = line.index(word, end)
        end = start + len(word)
        words.append((start, word))
    return words


def _under(heads: Sequence[tuple[int, str]], words: Sequence[tuple[int, str]]) -> Row:
    """Each head's word; where there are fewer or more words than heads, that which begins under it."""
    if len(heads) == len(words):
        return {head: word for (_, head), (_, word) in zip(heads, words, strict=True)}
    row: dict[str, object] = {}
    for start, word in words:
        head = next((name for begin, name in reversed(heads) if begin <= start), heads[0][1])
        row[head] = f"{row[head]} {word}" if head in row else word
    return row
