"""Decodes the responses of the TPU runtime's metric service: readings with labels, and distributions."""

from __future__ import annotations

from runvitals.base import protobuf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    LabelValue = str | int | float | bool
    Field = tuple[int, int, int | bytes]

# The deepest nesting of attribute lists.
_DEEPEST = 4


class TpuReading:
    """One value of a metric, or one distribution.

    Args:
        labels: distinguish it within its metric: ``{"device-id": 3}``.
        value: None if there is none.
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
        """The device or core; older runtimes send a number, newer ones a text."""
        for name in ("device-id", "device_id", "device_ordinal", "device-ordinal"):
            value = self.labels.get(name)
            if isinstance(value, str) and value.isdecimal() and value.isascii():
                return int(value)
            if isinstance(value, int) and not isinstance(value, bool):
                return value
        return None


class TpuDistribution:
    """A histogram.

    Args:
        count, mean: of all values.
        bounds: ascending bounds between neighbouring buckets. The first bucket is below the first bound, the
            last one above the last bound.
        counts: the number of values in each bucket.
        largest: the largest value, None if unknown.
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
        # Empty buckets at the end may be omitted.
        positive = [max(0.0, each) for each in counts[: len(self.bounds) + 1]]
        self.counts = positive + [0.0] * (len(self.bounds) + 1 - len(positive))
        self.largest = largest

    def percentile(self, percent: float) -> float | None:
        """Find the value below which `percent` of all values lie.

        Linear within a bucket; None if all buckets are empty.

        Example:
            >>> TpuDistribution(4, 1.5, [1.0, 2.0], [0, 4, 0]).percentile(50)
            1.5
        """
        total = sum(self.counts)
        if not total or not self.bounds:
            return None
        rank = total * percent / 100.0
        below = 0.0
        for position, count in enumerate(self.counts):
            if count and below + count >= rank:
                lower, upper = self._edges(position)
                value = lower + (upper - lower) * (rank - below) / count
                return value if self.largest is None else min(value, self.largest)
            below += count
        return self._edges(len(self.counts) - 1)[1]

    def plus(self, other: TpuDistribution) -> TpuDistribution | None:
        """Return the sum of both; None if their buckets differ."""
        if self.bounds != other.bounds:
            return None
        count = self.count + other.count
        mean = (self.mean * self.count + other.mean * other.count) / count if count else 0.0
        counts = [ours + theirs for ours, theirs in zip(self.counts, other.counts, strict=True)]
        largest = None if self.largest is None or other.largest is None else max(self.largest, other.largest)
        return TpuDistribution(count, mean, self.bounds, counts, largest)

    def since(self, earlier: TpuDistribution) -> TpuDistribution:
        """Return the values added since an earlier state; all of them if the program restarted in between."""
        count = self.count - earlier.count
        counts = [now - then for now, then in zip(self.counts, earlier.counts, strict=False)]
        if self.bounds != earlier.bounds or count < 0 or any(each < 0 for each in counts):
            return self
        mean = (self.mean * self.count - earlier.mean * earlier.count) / count if count else 0.0
        return TpuDistribution(count, mean, self.bounds, counts)

    def _edges(self, position: int) -> tuple[float, float]:
        """Return the bounds of a bucket. The outer bounds of the first and last bucket are estimated."""
        lower = self.bounds[position - 1] if position else min(0.0, self.bounds[0])
        if position < len(self.bounds):
            return lower, self.bounds[position]
        return lower, lower if self.largest is None else max(lower, self.largest)


def supported_metrics(message: bytes) -> list[str]:
    """Return the metric names in a response of ListSupportedMetrics.

    Raises:
        WireError: the response is invalid.
    """
    return [
        _text(value)
        for number, kind, listed in protobuf.fields(message)
        if (number, kind) == (1, protobuf.LENGTH)
        for inner, inner_kind, value in protobuf.fields(_bytes(listed))
        if (inner, inner_kind) == (1, protobuf.LENGTH)
    ]


def readings(message: bytes) -> list[TpuReading]:
    """Return the readings in a response of GetRuntimeMetric.

    Raises:
        WireError: the response is invalid.
    """
    values = []
    for number, kind, metric in protobuf.fields(message):
        if (number, kind) != (1, protobuf.LENGTH):
            continue
        for inner, inner_kind, reading in protobuf.fields(_bytes(metric)):
            if (inner, inner_kind) == (3, protobuf.LENGTH):
                values.append(_reading(_bytes(reading)))
    return values


def _reading(message: bytes) -> TpuReading:
    labels: dict[str, LabelValue] = {}
    value: float | None = None
    distribution = None
    for number, kind, content in protobuf.fields(message):
        if kind != protobuf.LENGTH:
            continue
        inner = _bytes(content)
        if number == 1:
            labels.update(_attribute(inner))
        elif number in (3, 4):  # gauge, counter
            value = _value(inner)
        elif number == 5:
            distribution = _distribution(inner)
    return TpuReading(labels, value, distribution)


def _attribute(message: bytes, depth: int = 0) -> dict[str, LabelValue]:
    """Return a key and its value; for nested lists, all keys and values in them."""
    key = ""
    labels: dict[str, LabelValue] = {}
    value: LabelValue | None = None
    for number, kind, content in protobuf.fields(message):
        if (number, kind) == (1, protobuf.LENGTH):
            key = _text(content)
        elif (number, kind) == (2, protobuf.LENGTH):
            for field in protobuf.fields(_bytes(content)):
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
    number, kind, content = field
    if (number, kind) == (1, protobuf.LENGTH):
        return _text(content)
    if isinstance(content, int) and number in (2, 3):
        return bool(content) if number == 2 else protobuf.to_signed(content)
    if (number, kind) == (4, protobuf.FIXED64):
        return protobuf.read_double(_bytes(content))
    return None


def _value(message: bytes) -> float | None:
    """Return the finite number of a gauge or counter; None for a text."""
    value: float | None = None
    for number, kind, content in protobuf.fields(message):
        if (number, kind) == (1, protobuf.FIXED64):
            value = protobuf.read_double(_bytes(content))
        elif isinstance(content, int) and number == 2:
            value = float(protobuf.to_signed(content))
    return value if value is not None and value - value == 0.0 else None


def _distribution(message: bytes) -> TpuDistribution:
    count, mean, largest = 0, 0.0, 0.0
    bounds: list[float] = []
    counts: list[int] = []
    for number, kind, content in protobuf.fields(message):
        if isinstance(content, int):
            if number == 1:
                count = protobuf.to_signed(content)
            elif number == 7:
                counts.append(protobuf.to_signed(content))
        elif kind == protobuf.FIXED64 and number == 2:
            mean = protobuf.read_double(content)
        elif kind == protobuf.FIXED64 and number == 4:
            largest = protobuf.read_double(content)
        elif kind == protobuf.LENGTH and number == 6:
            bounds = _bounds(content)
        elif kind == protobuf.LENGTH and number == 7:
            counts += protobuf.read_varints(content)
    # A missing number is 0 on the wire. The largest value is not below the mean.
    return TpuDistribution(count, mean, bounds, counts, largest if largest >= mean and largest > 0 else None)


def _bounds(message: bytes) -> list[float]:
    """Return the bounds of the buckets: exponential, explicit or linear."""
    for number, kind, content in protobuf.fields(message):
        if kind != protobuf.LENGTH:
            continue
        parts = list(protobuf.fields(_bytes(content)))
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
            return [second + first * position for position in range(min(size, 4096) + 1)]
    return []


def _exponential(size: int, growth: float, scale: float) -> list[float]:
    bounds: list[float] = []
    bound = scale
    # More than any histogram has, and within the range of a float.
    for _ in range(min(size, 4096) + 1):
        if bound - bound != 0.0:
            break
        bounds.append(bound)
        bound *= growth
    return bounds


def _doubles(part: Field) -> list[float]:
    _, kind, content = part
    if kind == protobuf.FIXED64:
        return [protobuf.read_double(_bytes(content))]
    return protobuf.read_doubles(_bytes(content)) if kind == protobuf.LENGTH else []


def _bytes(content: int | bytes) -> bytes:
    return content if isinstance(content, bytes) else b""


def _text(content: int | bytes) -> str:
    return _bytes(content).decode("utf-8", "replace")
