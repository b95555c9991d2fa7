"""Evaluates PromQL at the steps of a query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from runvitals.base import deadline
from runvitals.base.buckets import Floats, Integers
from runvitals.server.doors.promql import functions, native_histograms, range_functions
from runvitals.server.doors.promql.aggregation import aggregate, count_values
from runvitals.server.doors.promql.operators import combine
from runvitals.server.doors.promql.range_functions import OVER_TIME, Windows, over_windows
from runvitals.server.doors.promql.series_source import SeriesSource
from runvitals.server.doors.promql.syntax import (
    Aggregation,
    Binary,
    Call,
    Expression,
    Matching,
    Negation,
    Number,
    QueryError,
    Selector,
    StringLiteral,
    Subquery,
)
from runvitals.server.doors.promql.vectors import (
    NAME,
    Range,
    ScalarValues,
    Vector,
    VectorSeries,
    sorted_labels,
    without,
)

MAX_POINTS: Final = 3_000_000
"""Series × steps of a selector."""
MAX_QUERY_POINTS: Final = 10_000_000
"""The same of all selectors of a query: `a or b or c` keeps them all in memory."""
MAX_SUBQUERY_STEPS: Final = 50_000
DEFAULT_STEP_MS: Final = 60_000
"""The step of subqueries that name none: how often Prometheus evaluates rules by default."""
LOOK_BACK_MS: Final = 300_000
"""How long the last sample of a series counts, if it is not followed by a gap."""
_WINDOWS: Final = {
    "rate": (True, True),
    "increase": (True, False),
    "delta": (False, False),
}
"""(is it a counter's, is it per second)"""
_SMOOTHING: Final = ("double_exponential_smoothing", "holt_winters")
"""The names of one function, in Prometheus 3 and before."""
_ARGUMENTS: Final = {"quantile_over_time": 2, "predict_linear": 2, **dict.fromkeys(_SMOOTHING, 3)}
RANGE_FUNCTIONS: Final = frozenset((*_WINDOWS, *OVER_TIME, "irate", "idelta", "deriv", "predict_linear",
                                    "absent_over_time", *_SMOOTHING))  # fmt: skip


class _Query:
    """The state that the evaluators of a query and of its subqueries share.

    Attributes:
        start, end: of the query, ms UTC.
        points: series × steps of all selectors that were evaluated.
    """

    def __init__(self, source: SeriesSource, steps: Integers) -> None:
        self.source = source
        self.start, self.end = int(steps[0]), int(steps[-1])
        self.points = 0

    def count(self, series: int, steps: int) -> None:
        """Count the points of a selector, before it is read.

        Raises:
            QueryError: too many.
        """
        if series * steps > MAX_POINTS:
            raise QueryError(
                f"{series} series at {steps} steps are more than {MAX_POINTS} points: use a longer step, or "
                "narrow the selector",
                "execution",
            )
        self.points += series * steps
        if self.points > MAX_QUERY_POINTS:
            raise QueryError(
                f"the selectors of the query have more than {MAX_QUERY_POINTS} points: use a longer step, or "
                "fewer selectors",
                "execution",
            )


class Evaluator:
    """Evaluates expressions.

    Args:
        source: finds and reads the series.
        steps: the times, ms UTC, ascending.
        query: that it is a part of; None: it is the whole.
    """

    def __init__(self, source: SeriesSource, steps: Integers, query: _Query | None = None) -> None:
        self._query = _Query(source, steps) if query is None else query
        self._steps = steps

    def evaluate(self, node: Expression) -> ScalarValues | Vector:
        """Evaluate a query.

        Raises:
            QueryError: the query is wrong, or asks for what is not supported.
            TooSlow: it takes too long.
        """
        deadline.check()
        if isinstance(node, Number):
            return ScalarValues(np.full(len(self._steps), node.value))
        if isinstance(node, Selector):
            return self._instant(node)
        if isinstance(node, Negation):
            result = self.evaluate(node.expression)
            return (
                ScalarValues(-result.values)
                if isinstance(result, ScalarValues)
                else functions.map_values(result, np.negative)
            )
        if isinstance(node, Binary):
            return combine(node, self.evaluate(node.left), self.evaluate(node.right))
        if isinstance(node, Aggregation):
            return self._aggregate(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, Subquery):
            raise QueryError("parse error: expected an instant vector, got a range vector")
        raise QueryError("parse error: a text is not allowed here")

    def _aggregate(self, node: Aggregation) -> Vector:
        vector = self._vector(node.operator, node.expression)
        if node.operator == "count_values":
            assert node.parameter is not None
            return count_values(node, vector, self._text(node.operator, node.parameter))
        zeros = np.zeros(len(self._steps))
        parameters = zeros if node.parameter is None else self._scalar(node.operator, node.parameter)
        return aggregate(node, vector, parameters)

    def range(self, node: Selector | Subquery) -> list[Range]:
        """Return the samples of a range vector at the only step."""
        if isinstance(node, Selector):
            return self._samples(node, node.range_ms)
        ends = self._ends(node)
        windows = Windows(ends, node.range_ms)
        result = []
        for samples in self._subquery(node):
            first, after = windows.bounds(samples)
            part = slice(int(first[0]), int(after[0]))
            if part.start < part.stop:
                result.append(Range(samples.labels, samples.t[part], samples.values[part]))
        return result

    # -- selectors

    def _ends(self, node: Selector | Subquery) -> Integers:
        """Return the times at which a selector or subquery is evaluated."""
        if node.at is None:
            return self._steps - node.offset_ms
        at = {"start": self._query.start, "end": self._query.end}.get(str(node.at), node.at)
        return np.full(len(self._steps), int(at) - node.offset_ms, np.int64)

    def _samples(self, node: Selector, back_ms: int) -> list[Range]:
        ends = self._ends(node)
        t0, t1 = max(int(ends[0]) - back_ms + 1, 0), int(ends[-1])
        series_list = self._query.source.find(node.matchers, t0, t1)
        self._query.count(len(series_list), len(self._steps))
        samples = self._query.source.read(series_list, t0, t1)
        return native_histograms.with_all_bounds(samples) if node.is_native else samples

    def _instant(self, node: Selector) -> Vector:
        if node.range_ms:
            raise QueryError("parse error: expected an instant vector, got a range vector")
        ends = self._ends(node)
        result = []
        for samples in self._samples(node, LOOK_BACK_MS):
            index = np.searchsorted(samples.t, ends, side="right") - 1
            present = (index >= 0) & (samples.t[index] > ends - LOOK_BACK_MS)
            if samples.gaps is not None:  # the last gap ends the series until its next sample
                gap = np.searchsorted(samples.gaps, ends, side="right") - 1
                present &= (gap < 0) | (samples.gaps[gap] < samples.t[index])
            result.append(VectorSeries(samples.labels, samples.values[index], present))
        return result

    def _windows(self, node: Expression, function: str) -> tuple[list[Range], Windows]:
        if isinstance(node, Subquery):
            return self._subquery(node), Windows(self._ends(node), node.range_ms)
        if not isinstance(node, Selector) or not node.range_ms:
            raise QueryError(f"parse error: expected type range vector in call to function {function!r}")
        return self._samples(node, node.range_ms), Windows(self._ends(node), node.range_ms)

    def _subquery(self, node: Subquery) -> list[Range]:
        """Return the values of a subquery for all steps.

        They are the same for all, at multiples of its step.
        """
        ends, step_ms = self._ends(node), node.step_ms or DEFAULT_STEP_MS
        first = -((node.range_ms - int(ends[0])) // step_ms) * step_ms  # rounded up
        if (int(ends[-1]) - first) // step_ms >= MAX_SUBQUERY_STEPS:
            raise QueryError(
                f"a subquery would be evaluated at more than {MAX_SUBQUERY_STEPS} steps: use a longer step"
            )
        steps = np.arange(first, int(ends[-1]) + 1, step_ms, dtype=np.int64)
        if not len(steps):
            return []
        result = Evaluator(self._query.source, steps, self._query).evaluate(node.expression)
        if isinstance(result, ScalarValues):
            raise QueryError("parse error: subquery is only allowed on instant vector, got scalar")
        return [
            Range(line.labels, steps[line.present], line.values[line.present])
            for line in functions.unique(result)
            if line.present.any()
        ]

    # -- functions

    def _call(self, node: Call) -> ScalarValues | Vector:
        name, arguments = node.function, node.arguments
        if name in RANGE_FUNCTIONS:
            return self._over_range(name, arguments)
        if name in functions.MATH:
            self._expect(node, 1)
            return functions.map_values(self._vector(name, arguments[0]), functions.MATH[name])
        handler = _FUNCTIONS.get(name)
        if handler is None:
            raise QueryError(f"unknown or unsupported function {name[:100]!r}")
        return handler(self, node)

    def _over_range(self, name: str, arguments: Sequence[Expression]) -> Vector:
        expected = _ARGUMENTS.get(name, 1)
        if len(arguments) != expected:
            raise QueryError(f"parse error: expected {expected} argument(s) in call to {name!r}")
        selector = arguments[-1] if name == "quantile_over_time" else arguments[0]
        pairs, windows = self._windows(selector, name)
        if name in _WINDOWS:
            kind = _WINDOWS[name]
            return [range_functions.extrapolate(samples, windows, *kind) for samples in pairs]
        if name in ("irate", "idelta"):
            return [range_functions.instant(samples, windows, name == "irate") for samples in pairs]
        if name == "deriv":
            return [range_functions.deriv(samples, windows) for samples in pairs]
        if name == "predict_linear":
            # What is ahead counts from the time of the query, also with an offset.
            return _predict(pairs, windows, self._steps, self._scalar(name, arguments[1]))
        if name in _SMOOTHING:
            factors = self._scalar(name, arguments[1]), self._scalar(name, arguments[2])
            return [range_functions.smooth(samples, windows, *factors) for samples in pairs]
        if name == "absent_over_time":
            counted = [self._over_time("count_over_time", samples, windows) for samples in pairs]
            return functions.absence(counted, _equal_labels(selector), len(self._steps))
        parameters = np.zeros(len(self._steps))
        if name == "quantile_over_time":
            parameters = self._scalar(name, arguments[0])
        return [self._over_time(name, samples, windows, parameters) for samples in pairs]

    def _over_time(
        self, name: str, samples: Range, windows: Windows, parameters: Floats | None = None
    ) -> VectorSeries:
        arguments = np.zeros(len(self._steps)) if parameters is None else parameters
        line = over_windows(samples, windows, OVER_TIME[name], arguments)
        labels = line.labels if name == range_functions.KEEPS_NAME else without(line.labels, (NAME,))
        return VectorSeries(labels, line.values, line.present)

    # -- arguments

    def _expect(self, node: Call, least: int, most: int | None = None) -> None:
        if not least <= len(node.arguments) <= (least if most is None else most):
            raise QueryError(
                f"parse error: expected {least} argument(s) in call to {node.function!r}, "
                f"got {len(node.arguments)}"
            )

    def _vector(self, name: str, node: Expression) -> Vector:
        result = self.evaluate(node)
        if isinstance(result, ScalarValues):
            raise QueryError(f"parse error: expected type instant vector in {name!r}, got scalar")
        return result

    def _scalar(self, name: str, node: Expression) -> Floats:
        result = self.evaluate(node)
        if not isinstance(result, ScalarValues):
            raise QueryError(f"parse error: expected type scalar in {name!r}, got instant vector")
        return result.values

    def _text(self, name: str, node: Expression) -> str:
        if not isinstance(node, StringLiteral):
            raise QueryError(f"parse error: expected type string in call to function {name!r}")
        return node.value

    def _round(self, node: Call) -> Vector:
        self._expect(node, 1, 2)
        nearest = np.ones(len(self._steps))
        if len(node.arguments) == 2:
            nearest = self._scalar("round", node.arguments[1])
        vector = self._vector("round", node.arguments[0])
        return functions.map_values(vector, lambda values: functions.round_to(values, nearest))

    def _clamp(self, node: Call) -> Vector:
        bounds = {"clamp": 2, "clamp_min": 1, "clamp_max": 1}[node.function]
        self._expect(node, 1 + bounds)
        first = self._scalar(node.function, node.arguments[1])
        last = self._scalar(node.function, node.arguments[-1])
        low = None if node.function == "clamp_max" else first
        high = None if node.function == "clamp_min" else last
        vector = functions.map_values(
            self._vector(node.function, node.arguments[0]), lambda values: np.clip(values, low, high)
        )
        if node.function != "clamp":
            return vector
        possible = ~(first > last)
        return [VectorSeries(line.labels, line.values, line.present & possible) for line in vector]

    def _label_replace(self, node: Call) -> Vector:
        self._expect(node, 5)
        texts = [self._text(node.function, argument) for argument in node.arguments[1:]]
        vector = self._vector(node.function, node.arguments[0])
        return functions.label_replace(vector, texts[0], texts[1], texts[2], texts[3])

    def _label_join(self, node: Call) -> Vector:
        self._expect(node, 3, 50)
        texts = [self._text(node.function, argument) for argument in node.arguments[1:]]
        vector = self._vector(node.function, node.arguments[0])
        return functions.label_join(vector, texts[0], texts[1], tuple(texts[2:]))

    def _sort(self, node: Call) -> Vector:
        self._expect(node, 1)
        vector = self._vector(node.function, node.arguments[0])
        if len(self._steps) > 1:
            return vector
        sign = -1.0 if node.function == "sort_desc" else 1.0
        return sorted(vector, key=lambda line: (bool(np.isnan(line.values[0])), sign * line.values[0]))

    def _timestamp(self, node: Call) -> Vector:
        self._expect(node, 1)
        selector = node.arguments[0]
        if not isinstance(selector, Selector):
            return functions.map_values(self._vector("timestamp", selector), lambda _: self._steps / 1000.0)
        ends = self._ends(selector)
        presence = {line.labels: line.present for line in self._instant(selector)}
        return [
            VectorSeries(
                without(samples.labels, (NAME,)),
                samples.t[np.searchsorted(samples.t, ends, side="right") - 1] / 1000.0,
                presence[samples.labels],
            )
            for samples in self._samples(selector, LOOK_BACK_MS)
        ]

    def _calendar(self, node: Call) -> Vector:
        self._expect(node, 0, 1)
        if not node.arguments:
            values = functions.CALENDAR[node.function](self._steps / 1000.0)
            return [VectorSeries((), values, np.ones(len(values), np.bool_))]
        return functions.map_values(
            self._vector(node.function, node.arguments[0]), functions.CALENDAR[node.function]
        )

    def _pi(self, node: Call) -> ScalarValues:
        self._expect(node, 0)
        return ScalarValues(np.full(len(self._steps), np.pi))

    def _absence(self, node: Call) -> Vector:
        self._expect(node, 1)
        vector = self._vector(node.function, node.arguments[0])
        return functions.absence(vector, _equal_labels(node.arguments[0]), len(self._steps))

    def _time(self, node: Call) -> ScalarValues:
        self._expect(node, 0)
        return ScalarValues(self._steps / 1000.0)

    def _to_scalar(self, node: Call) -> ScalarValues:
        self._expect(node, 1)
        return ScalarValues(functions.single(self._vector("scalar", node.arguments[0]), len(self._steps)))

    def _to_vector(self, node: Call) -> Vector:
        self._expect(node, 1)
        values = self._scalar("vector", node.arguments[0])
        return [VectorSeries((), values, np.ones(len(values), np.bool_))]

    def _histogram_quantile(self, node: Call) -> Vector:
        self._expect(node, 2)
        fractions = self._scalar(node.function, node.arguments[0])
        return functions.histogram_quantile(fractions, self._buckets(node))

    def _histogram_fraction(self, node: Call) -> Vector:
        self._expect(node, 3)
        lower, upper = (self._scalar(node.function, argument) for argument in node.arguments[:2])
        return native_histograms.fractions(lower, upper, self._buckets(node))

    def _buckets(self, node: Call) -> Vector:
        """Return the buckets of classic histograms, and of native ones."""
        of = node.arguments[-1]
        buckets = self._vector(node.function, of)
        native = native_histograms.part_of(of, native_histograms.BUCKET)
        return buckets if native is None else [*buckets, *self._vector(node.function, native)]

    def _histogram_part(self, node: Call) -> Vector:
        """Evaluate `histogram_count`, `histogram_sum` or `histogram_avg`, which is one by the other."""
        self._expect(node, 1)
        of, name = node.arguments[0], node.function
        count, total = (native_histograms.part_of(of, part) for part in ("_count", "_sum"))
        if count is None or total is None:
            return []
        if name == "histogram_avg":
            return self._vector(name, Binary("/", total, count, Matching(), False))
        vector = self._vector(name, count if name == "histogram_count" else total)
        return [replace(line, labels=without(line.labels, (NAME,))) for line in vector]


def _predict(ranges: list[Range], windows: Windows, origins: Integers, ahead_s: Floats) -> Vector:
    """Evaluate `predict_linear`: the line through the samples of each window, at a time after its origin."""
    lines = []
    for samples in ranges:
        first, after = windows.bounds(samples)
        values = np.full(len(origins), np.nan)
        for step in np.flatnonzero(after - first >= 2).tolist():
            part = slice(first[step], after[step])
            grown, start = range_functions.slope(samples.t[part], samples.values[part], float(origins[step]))
            values[step] = start + grown * ahead_s[step]
        deadline.check()
        lines.append(VectorSeries(without(samples.labels, (NAME,)), values, after - first >= 2))
    return lines


def _equal_labels(node: Expression) -> tuple[tuple[str, str], ...]:
    """Return the labels that an absent series would have."""
    if not isinstance(node, Selector):
        return ()
    equal: dict[str, str] = {}
    for matcher in node.matchers:
        if matcher.label != NAME:
            is_known = matcher.operator == "=" and matcher.label not in equal
            equal[matcher.label] = matcher.value if is_known else ""
    return sorted_labels(equal)


_FUNCTIONS: Final[dict[str, Callable[[Evaluator, Call], ScalarValues | Vector]]] = {
    "round": Evaluator._round,
    **dict.fromkeys(("clamp", "clamp_min", "clamp_max"), Evaluator._clamp),
    "label_replace": Evaluator._label_replace,
    "label_join": Evaluator._label_join,
    **dict.fromkeys(("sort", "sort_desc"), Evaluator._sort),
    "timestamp": Evaluator._timestamp,
    "absent": Evaluator._absence,
    "time": Evaluator._time,
    "pi": Evaluator._pi,
    **dict.fromkeys(functions.CALENDAR, Evaluator._calendar),
    "scalar": Evaluator._to_scalar,
    "vector": Evaluator._to_vector,
    "histogram_quantile": Evaluator._histogram_quantile,
    "histogram_fraction": Evaluator._histogram_fraction,
    **dict.fromkeys(("histogram_count", "histogram_sum", "histogram_avg"), Evaluator._histogram_part),
}
