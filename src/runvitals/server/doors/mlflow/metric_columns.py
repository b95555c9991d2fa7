"""The metrics of a request as columns: Python would take longer for each value than everything else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
import numpy as np

from runvitals.base.buckets import Floats, Integers
from runvitals.model.limits import STEP as MAX_STEP
from runvitals.server.doors.mlflow.errors import invalid
from runvitals.server.doors.mlflow.limits import MAX_KEY, MAX_SHOWN
from runvitals.server.doors.mlflow.metric_history import HistoryPoint
from runvitals.server.doors.mlflow.requests import integer, number, wrong_type


class _Metric(msgspec.Struct, gc=False):
    key: str
    value: float
    timestamp: int
    step: int = 0


class SentBatch(msgspec.Struct):
    """The body of a `runs/log-batch` whose numbers are numbers, as usual ones are.

    Example:
        >>> SentBatch.decode(b'{"run_id": "1", "metrics": [{"key": "loss", "value": 0.5, "timestamp": 1}]}')
    """

    run_id: str
    metrics: list[_Metric] = []
    params: list[dict[str, Any]] | None = None
    tags: list[dict[str, Any]] | None = None

    @classmethod
    def decode(cls, body: bytes) -> SentBatch | None:
        """Return the batch; None if it has another form, which `requests.parse_message` may accept."""
        try:
            return _decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError):
            return None


_decode = msgspec.json.Decoder(SentBatch).decode
_key_of, _value_of, _timestamp_of, _step_of = map(attrgetter, ("key", "value", "timestamp", "step"))


class MetricColumns(NamedTuple):
    """Values of metrics, in the order in which they were sent.

    Attributes:
        names: the names that occur.
        name: of each value, its place in `names`.
        repeats: of each value, how many other values of its metric have its timestamp and step and come
            before it; None: there are no such values, as usual.
    """

    names: list[str]
    name: Integers
    values: Floats
    timestamps: Integers
    steps: Integers
    repeats: Integers | None = None

    @classmethod
    def of_batch(cls, metrics: Sequence[_Metric]) -> MetricColumns | None:
        """Return the metrics of a batch; None if a number is out of range."""
        count = len(metrics)
        try:
            columns = cls._of(
                map(_key_of, metrics),
                np.fromiter(map(_value_of, metrics), np.float64, count),
                np.fromiter(map(_timestamp_of, metrics), np.int64, count),
                np.fromiter(map(_step_of, metrics), np.int64, count),
            )
        except OverflowError:
            return None
        for numbers, least in ((columns.timestamps, 0), (columns.steps, -MAX_STEP)):
            if len(numbers) and not (numbers.min() >= least and numbers.max() <= MAX_STEP):
                return None
        return columns

    @classmethod
    def of_objects(cls, metrics: Iterable[Mapping[str, Any]], field: str = "") -> MetricColumns:
        """Return metrics from any form that MLflow accepts.

        Args:
            field: of the message that has them, in which case errors say which of them is meant.

        Raises:
            MlflowError: 400.
        """
        checked = [
            checked_metric(metric, f"{field}[{index}]." if field else "")
            for index, metric in enumerate(metrics)
        ]
        return cls._of(
            (key for key, _, _, _ in checked),
            np.array([value for _, value, _, _ in checked], np.float64),
            np.array([timestamp for _, _, timestamp, _ in checked], np.int64),
            np.array([step for _, _, _, step in checked], np.int64),
        )

    @classmethod
    def _of(cls, keys: Iterable[str], values: Floats, timestamps: Integers, steps: Integers) -> MetricColumns:
        numbers: dict[str, int] = {}
        name = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)
        return cls(list(numbers), name, values, timestamps, steps)

    def with_names(self, name_of_each: Sequence[str]) -> MetricColumns:
        """Return the same with other names, which may be equal."""
        names = list(dict.fromkeys(name_of_each))
        numbers = {name: index for index, name in enumerate(names)}
        return self._replace(names=names, name=np.array([numbers[name] for name in name_of_each])[self.name])

    def of_names(self, selects: Callable[[str], bool]) -> tuple[MetricColumns, MetricColumns]:
        """Return the values of those names that are wanted, and all others."""
        is_wanted = np.array([selects(name) for name in self.names], bool)
        mask = is_wanted[self.name]
        return self._where(mask), self._where(~mask)

    def _where(self, mask: np.ndarray[Any, np.dtype[np.bool_]]) -> MetricColumns:
        repeats = None if self.repeats is None else self.repeats[mask]
        return MetricColumns(
            self.names, self.name[mask], self.values[mask], self.timestamps[mask], self.steps[mask], repeats
        )

    def where(self, mask: np.ndarray[Any, np.dtype[np.bool_]], repeats: Integers) -> MetricColumns:
        """Return some of the values. `repeats`: of all values."""
        return self._replace(repeats=repeats)._where(mask)

    def points(self) -> Iterator[HistoryPoint]:
        """Yield the values one by one."""
        columns = (self.name, self.values, self.timestamps, self.steps)
        for name, value, timestamp, step in zip(*(column.tolist() for column in columns), strict=True):
            yield HistoryPoint(self.names[name], value, timestamp, step)

    def newest(self) -> Iterator[HistoryPoint]:
        """Return the newest value of each metric."""
        order = np.lexsort((self.values, self.timestamps, self.steps, self.name))
        name = self.name[order]
        is_last = np.append(name[1:] != name[:-1], True) if len(name) else np.empty(0, bool)
        return self._where(order[is_last]).points()

    def distinct(self) -> MetricColumns:
        """Return every value once.

        Of a metric's values with the same timestamp and step, those that are equal are one, and the others
        are numbered in the order of their values.
        """
        order = np.lexsort((self.name, self.steps, self.timestamps))
        if not self._follows_itself(order).any():
            return self
        order = np.lexsort((self.values, self.name, self.steps, self.timestamps))
        values, is_same = self.values[order], self._follows_itself(order)
        equal = (values[1:] == values[:-1]) | (np.isnan(values[1:]) & np.isnan(values[:-1]))
        order = order[np.append(True, ~(is_same & equal))]
        is_same = np.append(False, self._follows_itself(order))
        positions = np.arange(len(order))
        repeats = positions - np.maximum.accumulate(np.where(is_same, 0, positions))
        return self._where(order)._replace(repeats=repeats)

    def _follows_itself(self, order: Integers) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return which values but the first have metric, timestamp and step of the one before."""
        name, steps, timestamps = self.name[order], self.steps[order], self.timestamps[order]
        same = (name[1:] == name[:-1]) & (steps[1:] == steps[:-1]) & (timestamps[1:] == timestamps[:-1])
        return np.asarray(same, np.bool_)

    def tables(self) -> Iterator[MetricRows]:
        """Yield the values as tables without gaps, so that a NaN is one that was logged.

        No two values of a metric have the same timestamp, step and number of repeats: see `distinct`.
        """
        if not len(self.values):
            return
        repeated = np.zeros(len(self.values), np.int64) if self.repeats is None else self.repeats
        order = np.lexsort((self.name, repeated, self.steps, self.timestamps))
        name, repeats = self.name[order], repeated[order]
        timestamps, steps = self.timestamps[order], self.steps[order]
        is_first = np.empty(len(name), bool)
        is_first[0] = True
        is_first[1:] = (timestamps[1:] != timestamps[:-1]) | (steps[1:] != steps[:-1])
        is_first[1:] |= repeats[1:] != repeats[:-1]
        row, values = np.cumsum(is_first) - 1, self.values[order]
        timestamps, steps, repeats = timestamps[is_first], steps[is_first], repeats[is_first]
        widths = np.bincount(row)
        if len(values) == len(widths) * widths[0] and (widths == widths[0]).all():
            names = name.reshape(-1, widths[0])
            if (names == names[0]).all():
                yield self._table(names[0], timestamps, steps, repeats, values.reshape(names.shape))
                return
        ends = np.cumsum(widths)
        groups: dict[bytes, list[int]] = {}
        for index, (start, end) in enumerate(zip((ends - widths).tolist(), ends.tolist(), strict=True)):
            groups.setdefault(name[start:end].tobytes(), []).append(index)
        for packed, indices in groups.items():
            names = np.frombuffer(packed, np.int64)
            cells = (ends - widths)[indices][:, None] + np.arange(len(names))
            yield self._table(names, timestamps[indices], steps[indices], repeats[indices], values[cells])

    def _table(
        self, names: Integers, timestamps: Integers, steps: Integers, repeats: Integers, values: Floats
    ) -> MetricRows:
        return MetricRows(
            [self.names[name_index] for name_index in names.tolist()], timestamps, steps, repeats, values
        )


class MetricRows(NamedTuple):
    """Rows with the same metrics, in the order of timestamps, steps, then repeats.

    Attributes:
        repeats: as of `MetricColumns`.
        values: (rows, names).
    """

    names: list[str]
    timestamps: Integers
    steps: Integers
    repeats: Integers
    values: Floats


def checked_metric(sent: Mapping[str, Any], where: str) -> tuple[str, float, int, int]:
    """Return key, value, timestamp and step of a metric.

    Args:
        where: how the names of its fields begin in errors.

    Raises:
        MlflowError: 400.
    """
    key = sent.get("key")
    if key is not None and not isinstance(key, str):
        raise wrong_type("key", key, "a string")
    if not key:
        raise invalid(f"Missing value for required parameter '{where}key'.")
    value, timestamp, step = sent.get("value"), sent.get("timestamp"), sent.get("step")
    if value is None:
        raise invalid(
            f"Got invalid value None for metric '{key[:MAX_KEY]}' (timestamp={str(timestamp)[:30]}). "
            "Please specify value as a valid double (64-bit floating point)"
        )
    value = number("value", value)
    timestamp = integer("timestamp", timestamp)
    if timestamp is None:
        raise invalid(f"Missing value for required parameter '{where}timestamp'.")
    if timestamp < 0:
        raise invalid(
            f"Invalid value {timestamp} for parameter '{where}timestamp' supplied: metric '{key[:MAX_KEY]}' "
            f"(value={value}). Timestamp must be a nonnegative long (64-bit integer)"
        )
    step = integer("step", step) or 0
    if not -MAX_STEP <= step <= MAX_STEP or not -MAX_STEP <= timestamp <= MAX_STEP:
        raise invalid(f"The step and timestamp of metric '{key[:MAX_SHOWN]}' must be within ±2^53")
    return key, value, timestamp, step
