"""What the TPU runtime's metric service answers: readings with their labels, distributions among them."""

from __future__ import annotations

from runvitals import protobuf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    LabelValue = str | int | float | bool
    Field = tuple[int, int, int | bytes]

# Nested lists of attributes go no deeper than this.
_DEEPEST = 4


class TpuReading:
    """One number of a metric, or one distribution.

    Args:
        labels: what tells it from the metric's others: ``{"device-id": 3}``.
        value: None where it is none.
    """

    __slots__ = ("distribution", "labels", "value")

    def __init__(
        self, labels: Mapping[str, LabelValue], value: float | None, distribution: TpuDistribution | None
    ) -> None:
        self.labels = dict(labels)
        self.value = value
        self.distribution = distribution

    @property
    def device(self) -> int | None:
        """The device or core that it is about; older runtimes write a number, newer ones a text."""
        for name in ("device-id", "device_id", "device_ordinal", "device-ordinal"):
            value = self.labels.get(name)
            if isinstance(value, str) and value.isdecimal() and value.isascii():
                return int(value)
            if isinstance(value, int) and not isinstance(value, bool):
                return value
        return None


class TpuDistribution:
    """How often what was measured lay between which bounds.

    Args:
        count, mean: of all that was measured.
        bounds: between neighbouring buckets, rising; the first bucket lies below the first bound, the last
            above the last one.
        counts: of each bucket.
        largest: what was measured, None where it is not told.
    """

    __slots__ = ("bounds", "count", "counts", "largest", "mean")

    def __init__(
        self,
        count: float,
        mean: float,
        bounds: Sequence[float],
        counts: Sequence[float],
        largest: float | None = None,
    ) -> None:
        self.count = count
        self.mean = mean
        self.bounds = list(bounds)
        # Buckets at the end that hold nothing need not be sent.
        held = [max(0.0, each) for each in counts[: len(self.bounds) + 1]]
        self.counts = held + [0.0] * (len(self.bounds) + 1 - len(held))
        self.largest = largest

    def percentile(self, percent: float) -> float | None:
        """What so many per cent lie below, linear within its bucket; None without buckets that hold anything.

        Example:
            >>> TpuDistribution(4, 1.5, [1.0, 2.0], [0, 4, 0]).percentile(50)
            1.5
        """
        total = sum(self.counts)
        if not total or not self.bounds:
            return None
        rank = total * percent / 100.0
        below = 0.0
        for place, count in enumerate(self.counts):
            if count and below + count >= rank:
                lower, upper = self._edges(place)
                value = lower + (upper - lower) * (rank - below) / count
                return value if self.largest is None else min(value, self.largest)
            below += count
        return self._edges(len(self.counts) - 1)[1]

    def plus(self, other: TpuDistribution) -> TpuDistribution | None:
        """Both together; None where their buckets differ."""
        if self.bounds != other.bounds:
            return None
        count = self.count + other.count
        mean = (self.mean * self.count + other.mean * other.count) / count if count else 0.0
        counts = [ours + theirs for ours, theirs in zip(self.counts, other.counts, strict=True)]
        largest = None if self.largest is None or other.largest is None else max(self.largest, other.largest)
        return TpuDistribution(count, mean, self.bounds, counts, largest)

    def since(self, earlier: TpuDistribution) -> TpuDistribution:
        """What came after an earlier state of the same; all of it where it began anew in between."""
        count = self.count - earlier.count
        counts = [now - then for now, then in zip(self.counts, earlier.counts, strict=False)]
        if self.bounds != earlier.bounds or count < 0 or any(each < 0 for each in counts):
            return self
        mean = (self.mean * self.count - earlier.mean * earlier.count) / count if count else 0.0
        return TpuDistribution(count, mean, self.bounds, counts)

    def _edges(self, place: int) -> tuple[float, float]:
        """The bounds of a bucket; those of the first and the last, which have one each, as far as known."""
        lower = self.bounds[place - 1] if place else min(0.0, self.bounds[0])
        if place < len(self.bounds):
            return lower, self.bounds[place]
        return lower, lower if self.largest is None else max(lower, self.largest)


def supported(message: bytes) -> list[str]:
    """The names in an answer of ListSupportedMetrics.

    Raises:
        WireError: no such answer.
    """
    return [
        _text(value)
        for number, kind, listed in protobuf.fields(message)
        if (number, kind) == (1, protobuf.LENGTH)
        for inner, inner_kind, value in protobuf.fields(_bytes(listed))
        if (inner, inner_kind) == (1, protobuf.LENGTH)
    ]


def readings(message: bytes) -> list[TpuReading]:
    """The readings in an answer of GetRuntimeMetric.

    Raises:
        WireError: no such answer.
    """
    found = []
    for number, kind, metric in protobuf.fields(message):
        if (number, kind) != (1, protobuf.LENGTH):
            continue
        for inner, inner_kind, reading in protobuf.fields(_bytes(metric)):
            if (inner, inner_kind) == (3, protobuf.LENGTH):
                found.append(_reading(_bytes(reading)))
    return found


def _reading(message: bytes) -> TpuReading:
    labels: dict[str, LabelValue] = {}
    value: float | None = None
    distribution = None
    for number, kind, told in protobuf.fields(message):
        if kind != protobuf.LENGTH:
            continue
        inner = _bytes(told)
        if number == 1:
            labels.update(_attribute(inner))
        elif number in (3, 4):  # gauge, counter
            value = _value(inner)
        elif number == 5:
            distribution = _distribution(inner)
    return TpuReading(labels, value, distribution)


def _attribute(message: bytes, depth: int = 0) -> dict[str, LabelValue]:
    """A key and its value; a list of such, in its place, where the value is one."""
    key = ""
    labels: dict[str, LabelValue] = {}
    value: LabelValue | None = None
    for number, kind, told in protobuf.fields(message):
        if (number, kind) == (1, protobuf.LENGTH):
            key = _text(told)
        elif (number, kind) == (2, protobuf.LENGTH):
            for field in protobuf.fields(_bytes(told)):
                if field[:2] == (6, protobuf.LENGTH) and depth < _DEEPEST:
                    for inner, inner_kind, each in protobuf.fields(_bytes(field[2])):
                        if (inner, inner_kind) == (1, protobuf.LENGTH):
                            labels.update(_attribute(_bytes(each), depth + 1))
                else:
                    value = _scalar(field)
    if value is not None:
        labels[key] = value
    return labels


def _scalar(field: Field) -> LabelValue | None:
    number, kind, told = field
    if (number, kind) == (1, protobuf.LENGTH):
        return _text(told)
    if isinstance(told, int) and number in (2, 3):
        return bool(told) if number == 2 else protobuf.signed(told)
    if (number, kind) == (4, protobuf.FIXED64):
        return protobuf.read_double(_bytes(told))
    return None


def _value(message: bytes) -> float | None:
    """The number of a gauge or counter, finite; None for a text."""
    value: float | None = None
    for number, kind, told in protobuf.fields(message):
        if (number, kind) == (1, protobuf.FIXED64):
            value = protobuf.read_double(_bytes(told))
        elif isinstance(told, int) and number == 2:
            value = float(protobuf.signed(told))
    return value if value is not None and value - value == 0.0 else None


def _distribution(message: bytes) -> TpuDistribution:
    count, mean, largest = 0, 0.0, 0.0
    bounds: list[float] = []
    counts: list[int] = []
    for number, kind, told in protobuf.fields(message):
        if isinstance(told, int):
            if number == 1:
                count = protobuf.signed(told)
            elif number == 7:
                counts.append(protobuf.signed(told))
        elif kind == protobuf.FIXED64 and number == 2:
            mean = protobuf.read_double(told)
        elif kind == protobuf.FIXED64 and number == 4:
            largest = protobuf.read_double(told)
        elif kind == protobuf.LENGTH and number == 6:
            bounds = _bounds(told)
        elif kind == protobuf.LENGTH and number == 7:
            counts += protobuf.read_varints(told)
    # An absent number is 0 on this wire; the largest of what was measured is not below its mean.
    return TpuDistribution(count, mean, bounds, counts, largest if largest >= mean and largest > 0 else None)


def _bounds(message: bytes) -> list[float]:
    """The bounds that the options of buckets describe: exponential, explicit or linear ones."""
    for number, kind, told in protobuf.fields(message):
        if kind != protobuf.LENGTH:
            continue
        parts = list(protobuf.fields(_bytes(told)))
        if number == 3:
            return [bound for part in parts if part[0] == 1 for bound in _doubles(part)]
        size = next((value for inner, _, value in parts if inner == 1 and isinstance(value, int)), 0)
        numbers = {
            inner: protobuf.read_double(_bytes(value))
            for inner, inner_kind, value in reversed(parts)
            if inner_kind == protobuf.FIXED64
        }
        first, second = numbers.get(2, 0.0), numbers.get(3, 0.0)
        if number == 2:
            return _exponential(size, first, second)
        if number == 4:
            return [second + first * place for place in range(min(size, 4096) + 1)]
    return []


def _exponential(size: int, growth: float, scale: float) -> list[float]:
    bounds: list[float] = []
    bound = scale
    # More than any histogram has, and no bound that a float cannot hold.
    for _ in range(min(size, 4096) + 1):
        if bound - bound != 0.0:
            break
        bounds.append(bound)
        bound *= growth
    return bounds


def _doubles(part: Field) -> list[float]:
    _, kind, told = part
    if kind == protobuf.FIXED64:
        return [protobuf.read_double(_bytes(told))]
    return protobuf.read_doubles(_bytes(told)) if kind == protobuf.LENGTH else []


def _bytes(told: int | bytes) -> bytes:
    return told if isinstance(told, bytes) else b""


def _text(told: int | bytes) -> str:
    return _bytes(told).decode("utf-8", "replace")
