"""Charts, annotations and 3D scenes, as W&B's scripts log them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy
import pytest

import runvitals
from runvitals.journal import paths
from runvitals.sdk.media import chart_drawing
from runvitals.sdk.media.charts import ChartMedia
from runvitals.sdk.media.run_files import RunFiles

SVG = "{http://www.w3.org/2000/svg}"


def drawn(chart: Any) -> ElementTree.Element:
    return ElementTree.fromstring(chart._draw())


def texts(chart: Any) -> list[str | None]:
    return [element.text for element in drawn(chart).iter(f"{SVG}text")]


def table() -> runvitals.Table:
    return runvitals.Table(columns=["x", "y", "kind"], data=[[0, 1.5, "a<b"], [1, None, "c"], [2, 3, "a<b"]])


def test_lines_are_split_by_a_column() -> None:
    chart = runvitals.plot.line(table(), "x", "y", stroke="kind", title="loss & more")
    assert [len(str(line.get("points")).split()) for line in drawn(chart).iter(f"{SVG}polyline")] == [2, 0]
    assert {"loss & more", "a<b", "c"} <= {*texts(chart)}
    with pytest.raises(ValueError, match="no column 'z'; its columns: x, y, kind"):
        runvitals.plot.scatter(table(), "x", "z")


@pytest.mark.parametrize(
    "values", [[], [float("nan")], [1e308, -1e308], [5, 5], ["b", "a", "b"], [True, False]]
)
def test_any_values_are_drawn(values: list[Any]) -> None:
    rows = [[value, value, str(value)] for value in values]
    odd = runvitals.Table(columns=["x", "y", "name"], data=rows)
    for chart in (
        runvitals.plot.line(odd, "x", "y"), runvitals.plot.scatter(odd, "x", "y"),
        runvitals.plot.bar(odd, "name", "y"), runvitals.plot.histogram(odd, "x"),
    ):  # fmt: skip
        assert "nan" not in chart._draw().replace("nan</text>", "")


def test_a_long_series_is_thinned() -> None:
    line = chart_drawing.PlottedSeries("", range(100_000), range(100_000))
    assert len(chart_drawing.lines([line], "", "", "")) < 200_000


def test_curves_are_those_of_scikit_learn() -> None:
    from sklearn import metrics

    random = numpy.random.default_rng(0)
    true, scores = random.integers(0, 2, 200), random.random(200).round(2)
    rows = runvitals.plot.roc_curve(true, numpy.column_stack([1 - scores, scores])).table.data
    roc = [(x, y) for name, x, y in rows if name == "1"]
    fpr, tpr, _ = metrics.roc_curve(true, scores, drop_intermediate=False)
    numpy.testing.assert_allclose(roc, numpy.column_stack([fpr, tpr]))
    rows = runvitals.plot.pr_curve(true, scores, labels=["no", "yes"]).table.data
    precision, recall, _ = metrics.precision_recall_curve(true, scores)
    curve = numpy.column_stack([recall[::-1], precision[::-1]])
    numpy.testing.assert_allclose([(x, y) for name, x, y in rows if name == "yes"], curve)


def test_a_confusion_matrix() -> None:
    chart = runvitals.plot.confusion_matrix(y_true=[0, 1, 1], preds=[0, 1, 0], class_names=["cat", "dog"])
    assert chart.table.data == [["cat", "cat", 1], ["cat", "dog", 0], ["dog", "cat", 1], ["dog", "dog", 1]]
    probs = numpy.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    named = runvitals.plot.confusion_matrix(
        probs=probs, y_true=numpy.array([0, 1, 1]), class_names=["cat", "dog"]
    )
    assert named.table.data == chart.table.data
    texts_of_classes = runvitals.plot.confusion_matrix(y_true=["b", "a"], preds=["b", "b"])
    assert texts_of_classes.table.data[0] == ["a", "a", 0]
    with pytest.raises(ValueError, match="the class 5 has no name"):
        runvitals.plot.confusion_matrix(y_true=[0, 5], preds=[0, 1], class_names=["cat", "dog"])
    with pytest.raises(ValueError, match="either probs or preds"):
        runvitals.plot.confusion_matrix(y_true=[0])


def test_series_share_their_x_values() -> None:
    chart = runvitals.plot.line_series(xs=[0, 1], ys=[[1, 2], [3, 4]], keys=["up", "down"], xname="epoch")
    assert chart.table.columns == ["epoch", "lineKey", "lineVal"]
    assert chart.table.data == [[0, "up", 1], [1, "up", 2], [0, "down", 3], [1, "down", 4]]
    with pytest.raises(ValueError, match="2 lines, 2 lists of x values, 1 names"):
        runvitals.plot.line_series(xs=[0], ys=[[1], [2]], keys=["one"])


def test_specified_charts() -> None:
    fields = {"x": "x", "y": "y"}
    assert isinstance(runvitals.plot_table("wandb/line/v0", table(), fields), ChartMedia)
    own = table()
    assert runvitals.plot_table("team/mine", own, fields) is own


def test_a_chart_is_recorded_with_its_table(tmp_path: Path) -> None:
    run = runvitals.init(mode="offline", dir=str(tmp_path), reinit=True, settings={"quiet": True})
    run.log({"line": runvitals.plot.line(table(), "x", "y")})
    run.log({"bad": ChartMedia(runvitals.Table(columns=["x"]), lambda: 1 / 0)})  # type: ignore[arg-type,return-value]
    run.finish()
    read = runvitals.open_run(run.id, str(tmp_path))
    (item,) = read.media("line")[0].items
    assert (item["kind"], item["type"]) == ("figure", "image/svg+xml")
    assert json.loads(Path(str(read.path_of(item["table"]))).read_text())["rows"][0] == [0, 1.5, "a<b"]
    assert [file["sha256"] for file in item["files"]] == [item["table"]["sha256"]]
    assert "ZeroDivisionError" in read.media("bad")[0].items[0]["error"]


BOXES = {
    "truth": {
        "box_data": [
            {
                "position": {"minX": 0.1, "maxX": 0.4, "minY": 0.2, "maxY": 0.6},
                "class_id": 1,
                "scores": {"p": 0.5},
            },
            {
                "position": {"middle": [5, 4], "width": 2, "height": 2},
                "domain": "pixel",
                "box_caption": "dog",
            },
        ],
        "class_labels": {1: "cat"},
    }
}


def test_boxes_and_masks_are_files_of_the_image(tmp_path: Path) -> None:
    files = RunFiles(str(tmp_path))
    mask = numpy.zeros((8, 10), dtype=int)
    mask[2:4, 3:5] = 7
    classes = runvitals.Classes([{"id": 7, "name": "road"}])
    pixels = numpy.zeros((8, 10, 3), dtype=numpy.uint8)
    image = runvitals.Image(pixels, boxes=BOXES, masks={"guess": {"mask_data": mask}}, classes=classes)
    item = image.item(files)
    stored, drawn_mask = item["files"]
    assert item["annotations"] == stored["sha256"]
    content = json.loads((Path(paths.files_dir(str(tmp_path))) / stored["sha256"]).read_bytes())
    assert [box["sides"] for box in content["boxes"][0]["boxes"]] == [[0.1, 0.2, 0.4, 0.6], [4, 3, 6, 5]]
    assert content["boxes"][0]["boxes"][1] == {"sides": [4, 3, 6, 5], "pixels": True, "caption": "dog"}
    assert content["masks"] == [{"name": "guess", "classes": {"7": "road"}, "sha256": drawn_mask["sha256"]}]
    assert drawn_mask["type"] == "image/png"
    cells = runvitals.Table(columns=["image"], data=[[image]]).item(files)
    assert {file["sha256"] for file in cells["files"]} == {
        item["sha256"],
        stored["sha256"],
        drawn_mask["sha256"],
    }


@pytest.mark.parametrize(
    ("boxes", "masks", "why"),
    [
        ({"a": {}}, None, "has no box_data"),
        (None, {"a": {}}, "neither mask_data nor path"),
        ({"a": {"box_data": [{"position": {"minX": 1}}]}}, None, "a box without position"),
        (None, {"a": {"mask_data": numpy.zeros((2, 2, 3))}}, "expected height and width"),
        (None, {"a": {"mask_data": numpy.full((2, 2), 256)}}, "expected 0 to 255"),
    ],
)
def test_annotations_that_cannot_be_drawn(tmp_path: Path, boxes: Any, masks: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        runvitals.Image([[0]], boxes=boxes, masks=masks)._annotations.add_to({}, RunFiles(str(tmp_path)))  # type: ignore[union-attr]


def test_scenes(tmp_path: Path) -> None:
    files = RunFiles(str(tmp_path))
    box = runvitals.box3d(center=[0, 0, 0], size=[1, 2, 3])
    scene = {"type": "lidar/beta", "points": numpy.zeros((5, 6)), "boxes": numpy.array([box])}
    made = runvitals.Object3D(scene)
    assert len(made._scene[1]) == 12
    assert made.item(files)["type"] == "text/html"
    model = tmp_path / "cube.obj"
    model.write_text("v 0 0 0\n")
    item = runvitals.Object3D(str(model)).item(files)
    assert (runvitals.Object3D(model).kind, item["caption"]) == ("object3d", "cube.obj")
    for wrong in (numpy.zeros((5, 2)), [1, 2, 3], "cube.txt"):
        with pytest.raises(ValueError, match="Object3D"):
            runvitals.Object3D(wrong)


def test_molecules_and_joined_tables(tmp_path: Path) -> None:
    path = tmp_path / "water.pdb"
    path.write_text("ATOM 1 O")
    assert runvitals.Molecule(str(path)).kind == "text"
    with pytest.raises(ValueError, match="expected one of"):
        runvitals.Molecule("water.txt")
    left = runvitals.Table(columns=["id", "a"], data=[[1, "x"], [2, "y"]])
    right = runvitals.Table(columns=["a", "id"], data=[["p", 1], ["q", 1]])
    joined = runvitals.JoinedTable(left, right, "id")
    assert (joined.columns, joined.data) == (["id", "a", "a_2"], [[1, "x", "p"], [1, "x", "q"]])


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning", "ignore::RuntimeWarning")
def test_charts_of_scikit_learn(tmp_path: Path) -> None:
    from sklearn.cluster import KMeans
    from sklearn.datasets import load_iris
    from sklearn.linear_model import LogisticRegression, Ridge

    x, y = load_iris(return_X_y=True)
    run = runvitals.init(mode="offline", dir=str(tmp_path), reinit=True, settings={"quiet": True})
    model = LogisticRegression(max_iter=500).fit(x, y)
    predicted, scores = model.predict(x), model.predict_proba(x)
    runvitals.sklearn.plot_classifier(
        model, x, x, y, y, predicted, scores, ["a", "b", "c"], log_learning_curve=True
    )
    two = y < 2
    binary = LogisticRegression().fit(x[two], y[two])
    runvitals.sklearn.plot_calibration_curve(binary, x[two], y[two])
    runvitals.sklearn.plot_regressor(Ridge().fit(x, y), x, x, y, y)
    clusters = KMeans(3, n_init=1).fit(x)
    runvitals.sklearn.plot_clusterer(clusters, x, clusters.labels_)
    runvitals.sklearn.plot_silhouette(clusters, x, [f"cluster {label}" for label in clusters.labels_])
    for names in (["one"], list("abcdefgh")):  # too few, and too many, which W&B's takes
        runvitals.sklearn.plot_feature_importances(model, names)
    run.finish()
    read = runvitals.open_run(run.id, str(tmp_path))
    logged = {key.key: read.media(key.key)[0].items[0] for key in read.media_keys()}
    assert sorted(logged) == [
        "calibration_curve", "class_proportions", "confusion_matrix", "elbow_curve", "feature_importances",
        "learning_curve", "outlier_candidates", "precision_recall", "residuals", "roc", "silhouette_plot",
        "summary_metrics",
    ]  # fmt: skip
    assert [item for item in logged.values() if "error" in item] == []
    assert read.summary["accuracy_score"] == pytest.approx(0.973, abs=0.01)
