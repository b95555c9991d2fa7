"""3D scenes: clouds of points with boxes and lines, on a page that can be turned; and files of 3D models."""

from __future__ import annotations

import json
import os
from array import array
from base64 import b64encode
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from runvitals.model import media
from runvitals.monitoring.settings import wandb_arguments
from runvitals.sdk.media.base import Item, Media, text_of
from runvitals.sdk.media.pixels import array_of, class_color
from runvitals.sdk.media.run_files import RunFiles

MODEL_FILES = (".obj", ".gltf", ".glb", ".babylon", ".stl")
_MAX_POINTS = 300_000
"""Points that are recorded; of more, evenly spaced ones."""
_MAX_LINES = 100_000
_GREY = (70, 110, 200)
_PAGE = os.path.join(os.path.dirname(__file__), "scene.html")


class Object3D(Media):
    """A cloud of points, which is shown on a page that can be turned, or the file of a 3D model, to download.

    Args:
        data: an array of points × 3 (x, y, z), × 4 (and the number of a class) or × 6 (and red, green, blue);
            a mapping with `points` and, if there are some, `boxes` (with `corners`, `label` and `color`) and
            `vectors` (with `start` and `end`); or the path of such a mapping as `.pts.json`, or of an OBJ,
            glTF, GLB, Babylon or STL file.
        caption: a text to show below it.
        others: further arguments of W&B's class, which have no effect here.

    Raises:
        ValueError: another shape, or a file of another type.

    Example:
        >>> run.log({"lidar": runvitals.Object3D(points)})
    """

    kind = media.OBJECT

    def __init__(self, data: Any = ..., caption: str | None = None, **others: Any) -> None:
        data = wandb_arguments.data_of("Object3D", data, others)
        self._caption = caption
        self._path: str | None = None
        data = getattr(data, "name", data) if hasattr(data, "read") else data
        if isinstance(data, (str, os.PathLike)):
            path = os.fspath(data)
            if path.endswith(".pts.json"):
                with open(path, encoding="utf-8") as file:
                    data = json.load(file)
            elif path.lower().endswith(MODEL_FILES):
                self._path = os.path.realpath(path)
                return
            else:
                raise ValueError(f"Object3D(): {path}: expected .pts.json or one of {', '.join(MODEL_FILES)}")
        self.kind = media.HTML  # type: ignore[misc]
        scene = data if isinstance(data, Mapping) else {"points": data}
        self._scene = _rows(_listed(scene.get("points"))), _lines(scene)

    @classmethod
    def from_file(cls, data_or_path: Any, file_type: str | None = None) -> Object3D:
        """Return the file of a 3D model."""
        return cls(data_or_path)

    @classmethod
    def from_numpy(cls, data: Any) -> Object3D:
        """Return a cloud of points."""
        return cls(data)

    @classmethod
    def from_point_cloud(
        cls, points: Any, boxes: Sequence[Any] = (), vectors: Any = None, point_cloud_type: str = "lidar/beta"
    ) -> Object3D:
        """Return a cloud of points with boxes and arrows."""
        return cls({"points": points, "boxes": boxes, "vectors": vectors})

    def item(self, files: RunFiles) -> Item:
        """Store the page, or the file."""
        if self._path is not None:
            item = files.add_file(self._path)
            return {**item, "caption": text_of(self._caption or os.path.basename(self._path))[:10_000]}
        with open(_PAGE, encoding="utf-8") as file:
            page = file.read().replace("DATA", json.dumps(_packed(*self._scene)))
        item = {**files.add(page.encode("utf-8")), "type": "text/html"}
        return item if self._caption is None else {**item, "caption": text_of(self._caption)[:10_000]}


def box3d(
    *, center: Sequence[float], size: Sequence[float], orientation: Sequence[float] = (1, 0, 0, 0),
    color: Sequence[int] = (255, 0, 0), label: str | None = None, score: Any = None,
) -> dict[str, Any]:  # fmt: skip
    """Return a box for `Object3D`.

    Args:
        orientation: a quaternion: real part, i, j, k.
    """
    w, x, y, z = orientation
    matrix = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    signs = [(i, j, k) for i in (-0.5, 0.5) for j in (-0.5, 0.5) for k in (-0.5, 0.5)]
    corners = []
    for sign in signs:
        offset = [part * length for part, length in zip(sign, size, strict=True)]
        turned = [sum(a * b for a, b in zip(row, offset, strict=True)) for row in matrix]
        corners.append([c + d for c, d in zip(center, turned, strict=True)])
    return {"corners": corners, "color": list(color), "label": label, "score": score}


def _rows(points: Any) -> list[list[float]]:
    """Return the points as lists of 3, 4 or 6 numbers.

    Raises:
        ValueError: another shape.
    """
    rows = points if isinstance(points, (list, tuple)) else array_of(points)
    step = len(rows) // _MAX_POINTS + 1
    listed = rows[::step] if isinstance(rows, (list, tuple)) else rows[::step].tolist()
    for row in listed:
        if not isinstance(row, (list, tuple)) and not hasattr(row, "tolist"):
            raise ValueError("Object3D(): expected a list of points, each with 3, 4 or 6 numbers")
        if len(row) not in (3, 4, 6):
            raise ValueError(f"Object3D(): a point of {len(row)} numbers; expected 3, 4 or 6")
    return [[*map(float, row)] for row in listed]


def _lines(scene: Mapping[str, Any]) -> list[tuple[list[float], list[float], list[int]]]:
    """Return the edges of boxes and the arrows of a scene: two ends and a color."""
    lines = []
    for box in _listed(scene.get("boxes")):
        corners = [[*map(float, corner)] for corner in box["corners"]]
        if len(corners) != 8:
            raise ValueError(f"Object3D(): a box of {len(corners)} corners; expected 8")
        color = [int(part) for part in box.get("color") or (255, 0, 0)]
        lines += [(corners[a], corners[b], color) for a, b in _edges_of(corners)]
    for vector in _listed(scene.get("vectors")):
        lines.append(([*map(float, vector["start"])], [*map(float, vector["end"])], [220, 120, 0]))
    return lines[:_MAX_LINES]


def _listed(values: Any) -> Any:
    return () if values is None else values  # an array has no truth value


def _edges_of(corners: list[list[float]]) -> list[tuple[int, int]]:
    """Return the twelve edges of a box, whose corners may be in any order."""
    pairs = [(a, b) for a in range(8) for b in range(a)]
    length = {
        (a, b): sum((x - y) ** 2 for x, y in zip(corners[a], corners[b], strict=True)) for a, b in pairs
    }
    # A pair is an edge if no third corner lies within the sphere over it, except at its surface.
    edges = []
    for a, b in pairs:
        center = [(x + y) / 2 for x, y in zip(corners[a], corners[b], strict=True)]
        inside = sum(
            sum((x - y) ** 2 for x, y in zip(corner, center, strict=True)) < length[a, b] / 4 * 1.000001
            for corner in corners
        )
        if inside == 2:
            edges.append((a, b))
    return edges


def _packed(
    points: list[list[float]], lines: list[tuple[list[float], list[float], list[int]]]
) -> dict[str, str]:
    rows = [row for row in points if all(map(isfinite, row[:3]))]
    floats = array("f", [part for row in rows for part in row[:3]])
    colors = bytes(part for row in rows for part in _color_of(row))
    ends = array("f", [part for one, other, _ in lines for part in (*one, *other)])
    hues = bytes(min(max(part, 0), 255) for *_, color in lines for part in color[:3])
    packed = {"points": floats.tobytes(), "colors": colors, "lines": ends.tobytes(), "hues": hues}
    return {name: b64encode(content).decode("ascii") for name, content in packed.items()}


def _color_of(row: list[float]) -> tuple[int, ...]:
    if len(row) == 4:
        return class_color(int(row[3]) if isfinite(row[3]) else 0)
    if len(row) == 6:
        return tuple(int(min(max(part, 0), 255)) if isfinite(part) else 0 for part in row[3:])
    return _GREY
