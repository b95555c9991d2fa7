"""Texts, NaN, lists, objects and media of rows come back by step."""

from __future__ import annotations

import csv
import io
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from runvitals.client import Client
from runvitals.server.doors.wandb.media_items import media_record
from tests.patience import PATIENCE_S
from tests.server.doors.wandb.conftest import Door
from tests.server.doors.wandb.test_client import environment
from tests.server.serving import Served

SCRIPT = Path(__file__).with_name("history_client.py")


@pytest.fixture(scope="module")
def results(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("history")
    done = subprocess.run(
        [sys.executable, SCRIPT, "others"],
        env=environment(served, folder),
        cwd=folder,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("how", ["scan", "history"])
def test_rows_are_read_as_they_were_logged(results: Any, how: str) -> None:
    rows = {row.pop("_step"): row for row in json.loads(json.dumps(results[how]))}
    assert math.isnan(rows[0].pop("loss"))
    assert rows[0] == {"text": "first", "none": None, "flag": True, "big": 2**60}
    assert rows[1] == {
        "loss": math.inf, "list": [1, "x", {"k": 2}], "net.a": 1, "net.s": "nested",
    }  # fmt: skip
    assert (rows[2], rows[3], rows[5]) == ({"text": "=1+1"}, {"loss": 1.5, "text": 2}, {"text": "last"})
    assert rows[4]["image"]["_type"] == "image-file"
    assert rows[4]["image"]["path"].startswith("media/images/")
    assert rows[4]["table"]["_type"] == "table-file"


def test_rows_with_a_text_are_found_by_its_name(results: Any) -> None:
    assert [(row["_step"], row["text"]) for row in results["keys"]] == [
        (0, "first"), (2, "=1+1"), (3, 2), (5, "last"),
    ]  # fmt: skip
    assert "last" in results["frame"]
    assert results["last"] == 5


def test_tables_have_a_column_of_texts(served: Served, results: Any) -> None:
    url = f"{served.url}/api/v1/runs/others/history"
    keys = {"keys": ["text", "loss", "flag", "list"], "format": "csv", "resolution": "raw"}
    text = httpx.get(url, params=keys, timeout=PATIENCE_S).text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["text:other"] for row in rows] == ["first", "", "'=1+1", "", "last"]
    assert [row["loss"] for row in rows] == ["nan", "inf", "", "1.5", ""]
    assert (rows[1]["list"], rows[0]["flag:other"], rows[3]["text"]) == ('[1, "x", {"k": 2}]', "true", "2.0")


def test_the_page_finds_their_names(served: Served, results: Any) -> None:
    url = f"{served.url}/api/v1/runs/others/history/names"
    names = httpx.get(url, params={"of": "others", "keys": "[nt]*"}, timeout=PATIENCE_S).json()
    assert names == ["net.s", "none", "table", "text"]


def test_our_client_reads_them(served: Served, results: Any) -> None:
    with Client(served.url) as client:
        run = client.run("others")
        rows = {row.step: row.data for row in run.history("text", "n*")}
        assert rows[0] == {"text": "first", "none": None}
        assert rows[1] == {"net.a": 1, "net.s": "nested"}
        pytest.importorskip("pyarrow")
        table = run.history_table("none", "text").to_pylist()
        assert [row["text:other"] for row in table] == ["first", "=1+1", None, "last"]


def test_only_media_have_panels(served: Served, results: Any) -> None:
    listed = httpx.get(f"{served.url}/api/v1/runs/others/media", timeout=PATIENCE_S).json()
    # A set: they are of one row, whose names the client sends in any order.
    assert {(media["key"], media["kind"], media["count"]) for media in listed["media"]} == {
        ("image", "image", 1), ("table", "table", 1),
    }  # fmt: skip


def test_a_text_that_is_too_long_is_cut_and_an_event_says_so(door: Door) -> None:
    door.begin()
    line = json.dumps({"_step": 0, "long": "x" * 300_000, "short": "y"})
    body = {"files": {"wandb-history.jsonl": {"offset": 0, "content": [line]}}}
    url = f"{door.served.url}/files/main/digits/{door.run}/file_stream"
    assert httpx.post(url, json=body, timeout=PATIENCE_S).status_code == 200
    others = door.shown("/history", keys=["long", "short"])["others"]
    assert {other["key"]: len(other["value"]) for other in others} == {"long": 262_144, "short": 1}
    (event,) = door.shown()["events"]
    assert "a text of more than 262144 characters (1)" in event["text"]


def test_boxes_and_masks_of_images_are_named() -> None:
    sha256 = "a" * 64
    boxes = {"pred": {"_type": "boxes2D", "path": "b.json", "sha256": sha256, "size": 2}}
    masks = {"seg": {"_type": "mask", "path": "m.png", "sha256": sha256, "size": 2}, "odd": 3}
    named = [
        {"kind": "boxes", "name": "pred", "sha256": sha256},
        {"kind": "masks", "name": "seg", "sha256": sha256},
    ]
    one = media_record({"_type": "image-file", "path": "i.png", "boxes": boxes, "masks": masks})
    assert one == ("image", [{"kind": "image", "file": "i.png", "overlays": named}])
    several = media_record({
        "_type": "images/separated", "filenames": ["i.png", "j.png"], "all_boxes": [None, boxes],
        "all_masks": 3,
    })  # fmt: skip
    assert several == (
        "image",
        [{"kind": "image", "file": "i.png"}, {"kind": "image", "file": "j.png", "overlays": named[:1]}],
    )
