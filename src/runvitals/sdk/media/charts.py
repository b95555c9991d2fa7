"""Charts of tables and of results: `runvitals.plot`, with the names and arguments of W&B's module."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from math import isfinite
from typing import Any

from runvitals.model import media
from runvitals.monitoring.settings.messages import notify
from runvitals.sdk import arrays
from runvitals.sdk.media import chart_drawing
from runvitals.sdk.media.base import Item, Media, text_of
from runvitals.sdk.media.chart_drawing import PlottedSeries
from runvitals.sdk.media.run_files import RunFiles
from runvitals.sdk.media.table import Table
from runvitals.sdk.media.values import numbers_of

_CURVE_POINTS = 1000
"""Most points of a ROC or precision-recall curve that its table has."""
_HISTOGRAM_BINS = 32


class ChartMedia(Media):
    """A chart: a picture, and the table that it shows, which is recorded beside it.

    Args:
        table: what the chart shows.
        draw: returns the SVG; called when the chart is logged.
    """

    kind = media.FIGURE

    def __init__(self, table: Table, draw: Callable[[], str]) -> None:
        self.table = table
        self._draw = draw

    def item(self, files: RunFiles) -> Item:
        """Store the picture and the table."""
        picture = files.add(self._draw().encode("utf-8", "replace"))
        table = self.table.item(files)
        self.faults = self.table.faults
        stored = {name: table[name] for name in ("sha256", "bytes", "type")}
        return {**picture, "table": table, "files": [stored, *table.pop("files", ())]}


def line(
    table: Table,
    x: str,
    y: str,
    stroke: str | None = None,
    title: str | None = None,
    split_table: bool = False,
) -> ChartMedia:
    """Return a line chart of two columns of a table.

    Args:
        stroke: a column; rows with one value of it are a line of their own.
        split_table: ignored; W&B's function has it.

    Raises:
        ValueError: no such column.

    Example:
        >>> run.log({"loss by lr": runvitals.plot.line(table, x="lr", y="loss", title="loss")})
    """
    columns = _columns(table, x, y, *([stroke] if stroke else []))
    return ChartMedia(table, lambda: chart_drawing.lines(_split(table, *columns), title or "", x, y))


def scatter(table: Table, x: str, y: str, title: str | None = None, split_table: bool = False) -> ChartMedia:
    """Return a scatter plot of two columns of a table.

    Raises:
        ValueError: no such column.
    """
    columns = _columns(table, x, y)
    return ChartMedia(
        table, lambda: chart_drawing.lines(_split(table, *columns), title or "", x, y, points=True)
    )


def bar(
    table: Table, label: str, value: str, title: str | None = None, split_table: bool = False
) -> ChartMedia:
    """Return a bar chart: a bar for each row.

    Raises:
        ValueError: no such column.
    """
    label_column, value_column = _columns(table, label, value)

    def draw() -> str:
        names = [text_of(row[label_column]) for row in table.data]
        values = _numbers([row[value_column] for row in table.data])
        return chart_drawing.bars(names, [(value, values)], title or "", label, value)

    return ChartMedia(table, draw)


def histogram(table: Table, value: str, title: str | None = None, split_table: bool = False) -> ChartMedia:
    """Return a histogram of a column.

    Raises:
        ValueError: no such column.
    """
    (column,) = _columns(table, value)

    def draw() -> str:
        numbers = [number for number in _numbers([row[column] for row in table.data]) if isfinite(number)]
        counts, edges = arrays.counts(numbers, _HISTOGRAM_BINS) if numbers else ([], [0.0])
        names = [f"{edge:.3g}" if number % 4 == 0 else "" for number, edge in enumerate(edges[:-1])]
        return chart_drawing.bars(names, [("count", [*map(float, counts)])], title or "", value, "count")

    return ChartMedia(table, draw)


def line_series(
    xs: Iterable[Any],
    ys: Iterable[Iterable[Any]],
    keys: Iterable[str] | None = None,
    title: str | None = None,
    xname: str | None = None,
    split_table: bool = False,
) -> ChartMedia:
    """Return a chart of several lines.

    Args:
        xs: the x values of all lines, or a list of those of each.
        ys: the y values of each line.
        keys: the lines' names.

    Raises:
        ValueError: another number of names or of lists of x values than of lines.
    """
    lines = [list(_plain(values)) for values in ys]
    first = list(_plain(xs))
    each = (
        [list(_plain(values)) for values in first] if first and _is_list(first[0]) else [first] * len(lines)
    )
    names = [f"line_{i}" for i in range(len(lines))] if keys is None else [*map(text_of, keys)]
    if not len(names) == len(lines) == len(each):
        raise ValueError(
            f"{len(lines)} lines, {len(each)} lists of x values, {len(names)} names; expected equal numbers"
        )
    x_name = xname or "x"
    rows = [
        [x, name, y] for name, x_values, values in zip(names, each, lines, strict=True)
        for x, y in zip(x_values, values, strict=False)
    ]  # fmt: skip
    table = Table(columns=[x_name, "lineKey", "lineVal"], data=rows)
    return ChartMedia(table, lambda: chart_drawing.lines(_split(table, 0, 2, 1), title or "", x_name, ""))


def confusion_matrix(
    probs: Any = None,
    y_true: Any = None,
    preds: Any = None,
    class_names: Sequence[str] | None = None,
    title: str | None = None,
    split_table: bool = False,
) -> ChartMedia:
    """Return a confusion matrix: how often each class was predicted for each.

    Args:
        probs: a list for each sample, with a probability for each class; or `preds`.
        y_true: the true classes: numbers from 0, or names.
        preds: the predicted classes.
        class_names: names of the classes; default: the classes that occur.

    Raises:
        ValueError: neither or both of `probs` and `preds`, no `y_true`, lists of different length, or a class
            without a name.
    """
    if (probs is None) == (preds is None) or y_true is None:
        raise ValueError("confusion_matrix(): expected y_true, and either probs or preds")
    if preds is None:
        predicted = [max(range(len(row)), key=row.__getitem__) for row in map(list, _plain(probs))]
    else:
        predicted = list(_plain(preds))
    true = list(_plain(y_true))
    if len(predicted) != len(true):
        raise ValueError(f"confusion_matrix(): {len(true)} true classes and {len(predicted)} predictions")
    classes = sorted({*true, *predicted}, key=lambda name: (not isinstance(name, (int, float)), name))
    names = [*map(text_of, classes if class_names is None else class_names)]
    index_of = _index_of_class(classes, names, class_names is not None)
    counts = [[0] * len(names) for _ in names]
    for actual, guess in zip(true, predicted, strict=True):
        counts[index_of(actual)][index_of(guess)] += 1
    rows = [[actual, guess, counts[i][j]] for i, actual in enumerate(names) for j, guess in enumerate(names)]
    table = Table(columns=["Actual", "Predicted", "nPredictions"], data=rows)
    heading = title or "Confusion matrix"
    return ChartMedia(table, lambda: chart_drawing.matrix(counts, names, heading, "predicted", "actual"))


def _index_of_class(classes: Sequence[Any], names: Sequence[str], has_names: bool) -> Callable[[Any], int]:
    if not has_names:
        order = {value: index for index, value in enumerate(classes)}
        return order.__getitem__

    def index_of(value: Any) -> int:
        if isinstance(value, (int, float)) and 0 <= value < len(names) and value == int(value):
            return int(value)
        if text_of(value) in names:
            return names.index(text_of(value))
        raise ValueError(
            f"confusion_matrix(): the class {value!r} has no name among the {len(names)} of class_names"
        )

    return index_of


def roc_curve(
    y_true: Any,
    y_probas: Any,
    labels: Sequence[str] | None = None,
    classes_to_plot: Sequence[Any] | None = None,
    title: str | None = None,
    split_table: bool = False,
) -> ChartMedia:
    """Return the ROC curve of each class: the rate of true positives over that of false ones.

    Args:
        y_true: the true classes.
        y_probas: a list for each sample, with a score for each class in the order of the sorted classes; or
            a number for each, the score of the second of two classes.
        labels: names of the classes.
        classes_to_plot: only these classes.

    Raises:
        ValueError: lists of different length.
    """
    rows = []
    for name, hits in _by_class(y_true, y_probas, labels, classes_to_plot):
        positive = sum(count for count, _ in hits)
        negative = sum(all_ - count for count, all_ in hits)
        true = false = 0
        curve = [(0.0, 0.0)]
        for count, all_ in hits:
            true, false = true + count, false + all_ - count
            curve.append((false / (negative or 1), true / (positive or 1)))
        rows += [[name, x, y] for x, y in _thinned(curve)]
    table = Table(columns=["class", "fpr", "tpr"], data=rows)
    words = (title or "ROC curve", "false positive rate", "true positive rate")
    return ChartMedia(table, lambda: chart_drawing.lines(_split(table, 1, 2, 0), *words))


def pr_curve(
    y_true: Any,
    y_probas: Any,
    labels: Sequence[str] | None = None,
    classes_to_plot: Sequence[Any] | None = None,
    interp_size: int = 21,
    title: str | None = None,
    split_table: bool = False,
) -> ChartMedia:
    """Return the precision-recall curve of each class; see `roc_curve`.

    Args:
        interp_size: ignored; W&B's function interpolates, and this one has all points, at most 1,000.

    Raises:
        ValueError: lists of different length.
    """
    rows = []
    for name, hits in _by_class(y_true, y_probas, labels, classes_to_plot):
        positive = sum(count for count, _ in hits)
        true = total = 0
        curve = [(0.0, 1.0)]
        for count, all_ in hits:
            true, total = true + count, total + all_
            curve.append((true / (positive or 1), true / total))
        rows += [[name, x, y] for x, y in _thinned(curve)]
    table = Table(columns=["class", "recall", "precision"], data=rows)
    words = (title or "Precision-recall curve", "recall", "precision")
    return ChartMedia(table, lambda: chart_drawing.lines(_split(table, 1, 2, 0), *words))


def plot_table(
    vega_spec_name: str,
    data_table: Table,
    fields: Mapping[str, str],
    string_fields: Mapping[str, str] | None = None,
    split_table: bool = False,
) -> ChartMedia | Table:
    """Return the chart of one of W&B's own specifications: line, scatter, bar, histogram, area under curve.

    For a specification that its users have written, the table itself.
    """
    title = (string_fields or {}).get("title")
    chosen = {
        name: fields[name] for name in ("x", "y", "label", "value", "stroke", "class") if name in fields
    }
    kind = vega_spec_name.removeprefix("wandb/").partition("/")[0]
    if kind in ("line", "area-under-curve") and {"x", "y"} <= {*chosen}:
        return line(data_table, chosen["x"], chosen["y"], chosen.get("stroke") or chosen.get("class"), title)
    if kind == "scatter" and {"x", "y"} <= {*chosen}:
        return scatter(data_table, chosen["x"], chosen["y"], title)
    if kind == "bar" and {"label", "value"} <= {*chosen}:
        return bar(data_table, chosen["label"], chosen["value"], title)
    if kind == "histogram" and "value" in chosen:
        return histogram(data_table, chosen["value"], title)
    notify(f"the chart {vega_spec_name!r} is not drawn; its table is logged")
    return data_table


def visualize(id: str, value: Table) -> ChartMedia | Table:
    """Return the table of a chart that W&B's users have specified; see `plot_table`."""
    return plot_table(id, value, {})


def _by_class(
    y_true: Any, y_probas: Any, labels: Sequence[str] | None, only: Sequence[Any] | None
) -> Iterable[tuple[str, list[tuple[int, int]]]]:
    """Yield each class's name, and by falling score: samples of the class, and all samples."""
    true, scores = list(_plain(y_true)), list(_plain(y_probas))
    scores = [list(_plain(row)) if _is_list(row) else [1 - row, row] for row in scores]
    if len(true) != len(scores):
        raise ValueError(
            f"{len(true)} true classes and {len(scores)} lists of scores; expected equal numbers"
        )
    classes = None if only is None else set(_plain(only))
    for index, value in enumerate(sorted(set(true))):
        if index >= len(scores[0]) or (classes is not None and value not in classes):
            continue
        ranked = sorted(
            ((row[index], actual == value) for row, actual in zip(scores, true, strict=True)), reverse=True
        )
        groups = (list(group) for _, group in groupby(ranked, key=lambda pair: pair[0]))
        name = text_of(labels[index]) if labels is not None and index < len(labels) else text_of(value)
        yield name, [(sum(hit for _, hit in group), len(group)) for group in groups]


def _thinned(curve: list[tuple[float, float]]) -> list[tuple[float, float]]:
    if len(curve) <= _CURVE_POINTS:
        return curve
    return [curve[i * (len(curve) - 1) // (_CURVE_POINTS - 1)] for i in range(_CURVE_POINTS)]


def _columns(table: Table, *names: str) -> list[int]:
    if not isinstance(table, Table):
        raise TypeError(f"expected a runvitals.Table, not a {type(table).__name__}")
    for name in names:
        if name not in table.columns:
            raise ValueError(f"the table has no column {name!r}; its columns: {', '.join(table.columns)}")
    return [table.columns.index(name) for name in names]


def _split(table: Table, x: int, y: int, stroke: int | None = None) -> list[PlottedSeries]:
    """Return the rows as series: one for each value of the column `stroke`. Texts are numbered."""
    xs, ys = _numbers([row[x] for row in table.data]), _numbers([row[y] for row in table.data])
    points_by_name: dict[str, tuple[list[float], list[float]]] = {}
    for row, x_value, y_value in zip(table.data, xs, ys, strict=True):
        series = points_by_name.setdefault("" if stroke is None else text_of(row[stroke]), ([], []))
        series[0].append(x_value)
        series[1].append(y_value)
    return [PlottedSeries(name, *values) for name, values in points_by_name.items()]


def _numbers(values: Sequence[Any]) -> list[float]:
    """Return the values as numbers: texts by their order of appearance, None as not a number."""
    try:
        return [*map(float, numbers_of([float("nan") if value is None else value for value in values]))]
    except (TypeError, ValueError):
        order: dict[str, float] = {}
        return [order.setdefault(text_of(value), float(len(order))) for value in values]


def _plain(values: Any) -> Any:
    """Return an array, a tensor or a column of a data frame as a list; anything else as it is."""
    for method in ("detach", "numpy"):
        if callable(getattr(values, method, None)) and not hasattr(values, "tolist"):
            values = getattr(values, method)()
    for method in ("tolist", "to_list"):
        if callable(getattr(values, method, None)):
            return getattr(values, method)()
    return values


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or hasattr(value, "tolist")
