"""Charts of scikit-learn's models in the open run, under the names of `wandb.sklearn`.

Numbers come from the functions of scikit-learn that the program has installed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from runvitals.monitoring.settings.messages import notify
from runvitals.sdk.media import charts
from runvitals.sdk.media.base import Media
from runvitals.sdk.media.table import Table
from runvitals.sdk.start import active

_BINS = 10
_MAX_OUTLIERS = 100
_MAX_SILHOUETTE = 2000


def plot_classifier(
    model: Any,
    X_train: Any,
    X_test: Any,
    y_train: Any,
    y_test: Any,
    y_pred: Any,
    y_probas: Any,
    labels: Sequence[str] | None = None,
    is_binary: bool = False,
    model_name: str = "Classifier",
    feature_names: Sequence[str] | None = None,
    log_learning_curve: bool = False,
) -> None:
    """Log the charts of a classifier that was fitted: matrix, curves, importances, proportions, metrics."""
    plot_feature_importances(model, feature_names)
    if log_learning_curve:
        plot_learning_curve(model, X_train, y_train)
    plot_confusion_matrix(y_test, y_pred, labels)
    plot_summary_metrics(model, X_train, y_train, X_test, y_test)
    plot_class_proportions(y_train, y_test, labels)
    plot_roc(y_test, y_probas, labels)
    plot_precision_recall(y_test, y_probas, labels)
    if is_binary:
        plot_calibration_curve(model, X_train, y_train, model_name)


def plot_regressor(
    model: Any, X_train: Any, X_test: Any, y_train: Any, y_test: Any, model_name: str = "Regressor"
) -> None:
    """Log the charts of a regressor that was fitted: metrics, learning curve, outliers, residuals."""
    plot_summary_metrics(model, X_train, y_train, X_test, y_test)
    plot_learning_curve(model, X_train, y_train)
    plot_outlier_candidates(model, X_train, y_train)
    plot_residuals(model, X_train, y_train)


def plot_clusterer(
    model: Any, X_train: Any, cluster_labels: Any, labels: Any = None, model_name: str = "Clusterer"
) -> None:
    """Log the charts of clusters: the elbow curve, if their number can be chosen, and silhouettes."""
    if hasattr(model, "n_clusters"):
        plot_elbow_curve(model, X_train)
    plot_silhouette(model, X_train, cluster_labels, labels)


def plot_roc(
    y_true: Any = None,
    y_probas: Any = None,
    labels: Sequence[str] | None = None,
    plot_micro: bool = True,
    plot_macro: bool = True,
    classes_to_plot: Any = None,
) -> None:
    """Log the ROC curve of each class, as `roc`; see `runvitals.plot.roc_curve`."""
    _log("roc", charts.roc_curve(y_true, y_probas, labels, classes_to_plot))


def plot_precision_recall(
    y_true: Any = None,
    y_probas: Any = None,
    labels: Sequence[str] | None = None,
    plot_micro: bool = True,
    classes_to_plot: Any = None,
) -> None:
    """Log the precision-recall curve of each class, as `precision_recall`."""
    _log("precision_recall", charts.pr_curve(y_true, y_probas, labels, classes_to_plot))


def plot_confusion_matrix(
    y_true: Any = None,
    y_pred: Any = None,
    labels: Sequence[str] | None = None,
    true_labels: Any = None,
    pred_labels: Any = None,
    normalize: bool = False,
) -> None:
    """Log how often each class was predicted for each, as `confusion_matrix`."""
    _log("confusion_matrix", charts.confusion_matrix(y_true=y_true, preds=y_pred, class_names=labels))


def plot_feature_importances(
    model: Any = None,
    feature_names: Sequence[str] | None = None,
    title: str = "Feature importances",
    max_num_features: int = 50,
) -> None:
    """Log `feature_importances_`, `feature_log_prob_` or `coef_` of a model, as `feature_importances`.

    Args:
        feature_names: in their order; too many, as with the column of the labels, or too few do no harm.
    """
    weights = next(
        (
            getattr(model, name)
            for name in ("feature_importances_", "feature_log_prob_", "coef_")
            if hasattr(model, name)
        ),
        None,
    )
    if weights is None:
        notify(f"a {type(model).__name__} has no importances of its features: no chart of them")
        return
    array = _numpy().asarray(weights)
    importances = array if array.ndim == 1 else abs(array).mean(axis=0)
    known = getattr(model, "feature_names_in_", ()) if feature_names is None else feature_names
    names = list(map(str, known))[: len(importances)]
    names += [f"feature {number}" for number in range(len(names), len(importances))]
    rows = sorted(zip(names, importances.tolist(), strict=True), key=lambda row: -row[1])
    table = Table(columns=["feature_names", "importances"], data=rows[:max_num_features])
    _log("feature_importances", charts.bar(table, "feature_names", "importances", title))


def plot_class_proportions(y_train: Any = None, y_test: Any = None, labels: Any = None) -> None:
    """Log how many samples each class has in training and test, as `class_proportions`."""
    numpy = _numpy()
    rows = []
    for dataset, classes in (("train", y_train), ("test", y_test)):
        if classes is not None:
            for name, count in zip(*numpy.unique(numpy.asarray(classes), return_counts=True), strict=True):
                rows.append([f"{_class_name(name.item(), labels)} ({dataset})", dataset, int(count)])
    table = Table(columns=["class", "dataset", "count"], data=sorted(rows))
    _log("class_proportions", charts.bar(table, "class", "count", "Samples of each class"))


def plot_summary_metrics(
    model: Any = None, X: Any = None, y: Any = None, X_test: Any = None, y_test: Any = None
) -> None:
    """Log the scores of a fitted model in the test, as `summary_metrics` and each by its name."""
    metrics = import_module("sklearn.metrics")
    predicted = model.predict(X_test)
    if import_module("sklearn.base").is_classifier(model):
        average = {"average": "weighted", "zero_division": 0}
        scores = {
            "accuracy_score": metrics.accuracy_score(y_test, predicted),
            "precision": metrics.precision_score(y_test, predicted, **average),
            "recall": metrics.recall_score(y_test, predicted, **average),
            "f1_score": metrics.f1_score(y_test, predicted, **average),
        }
    else:
        scores = {
            "mae": metrics.mean_absolute_error(y_test, predicted),
            "mse": metrics.mean_squared_error(y_test, predicted),
            "r2_score": metrics.r2_score(y_test, predicted),
        }
    rows = [[name, float(score), type(model).__name__] for name, score in scores.items()]
    table = Table(columns=["metric_name", "metric_value", "model_name"], data=rows)
    active().log({"summary_metrics": charts.bar(table, "metric_name", "metric_value", "Scores"), **scores})


def plot_learning_curve(
    model: Any = None,
    X: Any = None,
    y: Any = None,
    cv: Any = None,
    shuffle: bool = False,
    random_state: Any = None,
    train_sizes: Any = None,
    n_jobs: int = 1,
    scoring: Any = None,
) -> None:
    """Log the scores in training and test over the size of the training, as `learning_curve`."""
    sizes = {} if train_sizes is None else {"train_sizes": train_sizes}
    counts, train, test = import_module("sklearn.model_selection").learning_curve(
        model,
        X,
        y,
        cv=cv,
        n_jobs=n_jobs,
        scoring=scoring,
        shuffle=shuffle,
        random_state=random_state,
        **sizes,
    )
    rows = [
        [dataset, int(size), float(score)]
        for dataset, scores in (("train", train), ("test", test))
        for size, score in zip(counts, scores.mean(axis=1), strict=True)
    ]
    table = Table(columns=["dataset", "train_size", "score"], data=rows)
    _log("learning_curve", charts.line(table, "train_size", "score", "dataset", "Learning curve"))


def plot_calibration_curve(
    clf: Any = None, X: Any = None, y: Any = None, clf_name: str = "Classifier"
) -> None:
    """Log the share of positives over the predicted probability of a classifier of two classes.

    It is logged as `calibration_curve`. The model is not fitted again.
    """
    share, mean = import_module("sklearn.calibration").calibration_curve(
        y, clf.predict_proba(X)[:, 1], n_bins=_BINS
    )
    rows = [
        *([clf_name, float(x), float(y_value)] for x, y_value in zip(mean, share, strict=True)),
        ["perfectly calibrated", 0.0, 0.0], ["perfectly calibrated", 1.0, 1.0],
    ]  # fmt: skip
    table = Table(columns=["model", "mean_predicted_value", "fraction_of_positives"], data=rows)
    chart = charts.line(table, "mean_predicted_value", "fraction_of_positives", "model", "Calibration")
    _log("calibration_curve", chart)


def plot_elbow_curve(
    clusterer: Any = None,
    X: Any = None,
    cluster_ranges: Sequence[int] | None = None,
    n_jobs: int = 1,
    show_cluster_time: bool = True,
) -> None:
    """Log the score and the seconds of fitting over the number of clusters, as `elbow_curve`."""
    clone = import_module("sklearn.base").clone
    rows = []
    for count in cluster_ranges or (1, 3, 5, 7, 9):
        model = clone(clusterer).set_params(n_clusters=count)
        began_s = time.perf_counter()
        score = model.fit(X).score(X)
        rows.append([count, abs(float(score)), time.perf_counter() - began_s])
    table = Table(columns=["cluster_ranges", "errors", "clustering_time"], data=rows)
    _log("elbow_curve", charts.line(table, "cluster_ranges", "errors", title="Elbow curve"))


def plot_silhouette(
    clusterer: Any = None,
    X: Any = None,
    cluster_labels: Any = None,
    labels: Any = None,
    metric: str = "euclidean",
    kmeans: bool = True,
) -> None:
    """Log how well each sample fits its cluster, sorted within clusters, as `silhouette_plot`."""
    if cluster_labels is None:
        cluster_labels = clusterer.labels_
    values = import_module("sklearn.metrics").silhouette_samples(X, cluster_labels, metric=metric)
    class_names = [_class_name(cluster, labels) for cluster in _numpy().asarray(cluster_labels).tolist()]
    ranked = sorted(zip(class_names, values.tolist(), strict=True), key=lambda row: (row[0], -row[1]))
    rows = [[cluster, position, value] for position, (cluster, value) in enumerate(ranked)]
    step = len(rows) // _MAX_SILHOUETTE + 1
    table = Table(columns=["cluster", "sample", "silhouette"], data=rows[::step])
    _log("silhouette_plot", charts.line(table, "sample", "silhouette", "cluster", "Silhouettes"))


def plot_residuals(regressor: Any = None, X: Any = None, y: Any = None) -> None:
    """Log the errors of a fitted regressor over what it predicts, for 80 % and 20 % of the data.

    It is logged as `residuals`. The model is fitted to the 80 %, in a copy.
    """
    selection = import_module("sklearn.model_selection")
    parts = selection.train_test_split(
        _numpy().asarray(X), _numpy().asarray(y), test_size=0.2, random_state=0
    )
    model = import_module("sklearn.base").clone(regressor).fit(parts[0], parts[2])
    rows = [
        [dataset, float(guess), float(guess - actual)]
        for dataset, samples, targets in (("train", parts[0], parts[2]), ("test", parts[1], parts[3]))
        for guess, actual in zip(model.predict(samples), targets, strict=True)
    ]
    table = Table(columns=["dataset", "y_pred", "residuals"], data=rows)
    _log("residuals", charts.scatter(table, "y_pred", "residuals", "Residuals"))


def plot_outlier_candidates(regressor: Any = None, X: Any = None, y: Any = None) -> None:
    """Log how much each sample changes a linear fit (Cook's distance), as `outlier_candidates`."""
    numpy = _numpy()
    samples, targets = numpy.asarray(X, dtype=float), numpy.asarray(y, dtype=float)
    model = import_module("sklearn.base").clone(regressor).fit(samples, targets)
    q, _ = numpy.linalg.qr(numpy.column_stack([numpy.ones(len(samples)), samples]))
    leverage = (q**2).sum(axis=1).clip(max=1 - 1e-9)
    errors = targets - model.predict(samples)
    variance = (errors**2).sum() / max(len(samples) - q.shape[1], 1)
    distances = errors**2 * leverage / (q.shape[1] * (variance or 1) * (1 - leverage) ** 2)
    most = numpy.argsort(-distances)[:_MAX_OUTLIERS]
    table = Table(columns=["sample", "distance"], data=[[int(i), float(distances[i])] for i in sorted(most)])
    _log("outlier_candidates", charts.bar(table, "sample", "distance", "Cook's distance"))


def _class_name(value: Any, labels: Sequence[str] | Mapping[Any, str] | None) -> str:
    if labels is not None and isinstance(value, int) and 0 <= value < len(labels):
        return str(labels[value])
    return str(value)


def _log(name: str, chart: Media) -> None:
    active().log({name: chart})


def _numpy() -> Any:
    """Return the NumPy that scikit-learn has installed."""
    return import_module("numpy")
