"""Series and what was logged as CSV, Arrow and Parquet."""

from __future__ import annotations

import csv
import io
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from runvitals.readers.journals.series import Series
from runvitals.server.charts.routes.tables import blocks, samples
from runvitals.server.charts.routes.tables.formats import MEDIA_TYPES, accepted_format
from runvitals.server.http import cached_read
from tests.readers.journals.journals import T0, Monitor, Trainer, Training
from tests.server.client import Client
from tests.server.stored_runs import StoredServer


@pytest.fixture
def local(tmp_path: Path) -> Client:
    return Client(tmp_path)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StoredServer]:
    monkeypatch.setattr(cached_read, "FRESH_S", 0.0)
    server = StoredServer(tmp_path / "server")
    yield server
    server.close()


def lines(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode())))


def table(client: Client, path: str, form: str = "arrow", **params: Any) -> pa.Table:
    response = client.get(f"/api/v1/runs/abc/{path}", params={"format": form, **params})
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].partition(";")[0] == MEDIA_TYPES[form]  # type: ignore[index]
    if form == "arrow":
        return pa.ipc.open_stream(response.content).read_all()
    return parquet.read_table(io.BytesIO(response.content))


def test_a_row_for_each_time_and_a_column_for_each_key(tmp_path: Path, local: Client) -> None:
    for host, value in (("node1", 1.0), ("node2", 5.0)):
        monitor = Monitor(tmp_path, host=host)
        monitor.sample(T0, {"cpu": value, "memory_percent": 50.0})
        monitor.sample(T0 + 1000, {"cpu": math.nan})
        monitor.sample(T0 + 2000, {"cpu": math.inf, "memory_percent": -0.0})
    response = local.get("/api/v1/runs/abc/metrics?format=csv&resolution=raw")
    assert response.headers["content-disposition"] == 'attachment; filename="abc.csv"'
    assert response.text == (
        "t,host,role,cpu,memory_percent\n"
        f"{T0},node1,monitor,1.0,50.0\n"
        f"{T0},node2,monitor,5.0,50.0\n"
        f"{T0 + 1000},node1,monitor,,\n"
        f"{T0 + 1000},node2,monitor,,\n"
        f"{T0 + 2000},node1,monitor,inf,-0.0\n"
        f"{T0 + 2000},node2,monitor,inf,-0.0\n"
    )
    for form in ("arrow", "parquet"):
        rows = table(local, "metrics", form, resolution="raw", host="node1")
        assert rows.schema.field("t").type == pa.timestamp("ms", "UTC")
        assert rows["t"].cast(pa.int64()).to_pylist() == [T0, T0 + 1000, T0 + 2000]
        assert rows["host"].to_pylist() == ["node1"] * 3
        assert str(rows["cpu"].to_pylist()) == "[1.0, nan, inf]"  # NaN is a gap,
        assert str(rows["memory_percent"].to_pylist()) == "[50.0, None, -0.0]"  # null was not read


def test_all_formats_of_both_libraries_equal_json(
    tmp_path: Path, local: Client, server: StoredServer
) -> None:
    training = Training(tmp_path, gpus=1)
    training.advance(40)
    server.take(tmp_path)
    params = {"keys": ["cpu", "disk.*", "gpu.*"], "resolution": "raw", "t1": T0 + 30_500}
    reported = {
        key: dict(zip(group["t"], values, strict=True))
        for group in server.ask("runs/abc/metrics", **params)["groups"]
        for key, values in group["series"].items()
    }
    assert {"cpu", "disk.readMBps", "gpu.0.powerWatts"} <= reported.keys()
    for client in (local, server):
        for form in ("arrow", "parquet"):
            found = table(client, "metrics", form, **params)
            times = found["t"].cast(pa.int64()).to_pylist()
            assert times == sorted(times)
            for key, values in reported.items():
                column = dict(zip(times, found[key].to_pylist(), strict=True))
                assert {t: value for t, value in column.items() if value is not None} == values
        response = client.get("/api/v1/runs/abc/metrics", params={**params, "format": "csv"})
        rows = lines(response.content)
        assert {int(row["t"]): float(row["cpu"]) for row in rows} == reported["cpu"]


def test_windows_join_without_gaps_or_repeats(
    tmp_path: Path, server: StoredServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = Training(tmp_path)
    training.advance(50)
    training._ticks += 900  # a long pause: the windows there are empty
    training.advance(50)
    server.take(tmp_path)
    whole = table(server, "metrics", resolution="raw")
    for values in (50, 700):
        monkeypatch.setattr(samples, "WINDOW_VALUES", values)
        assert str(table(server, "metrics", resolution="raw").to_pydict()) == str(whole.to_pydict())


def test_bucket_tables_have_value_extremes_and_count(tmp_path: Path, server: StoredServer) -> None:
    training = Training(tmp_path)
    training.advance(100)
    server.take(tmp_path)
    reported = server.ask("runs/abc/metrics", keys="cpu", max_points=10)
    (group,) = reported["groups"]
    rows = table(server, "metrics", keys="cpu", max_points=10)
    assert rows.column_names == ["t", "host", "role", "cpu", "cpu:min", "cpu:max", "cpu:n"]
    assert rows["cpu"].to_pylist() == group["series"]["cpu"]
    assert rows["cpu:max"].to_pylist() == group["max"]["cpu"]
    assert rows["cpu:n"].to_pylist() == group["n"]
    assert rows.schema.field("cpu:n").type == pa.int64()


def test_a_history_table_has_a_row_for_each_call(tmp_path: Path, local: Client) -> None:
    for rank in (0, 1):
        trainer = Trainer(tmp_path, pid=100 + rank, rank=rank)
        trainer.log(T0, 0, loss=1.0 + rank, host=7.0)
        trainer.log(T0 + 1000, 1, loss=0.5 + rank)
        trainer.log(T0 + 1000, 1, loss=0.4 + rank, eval=0.1)
    response = local.get("/api/v1/runs/abc/history?format=csv")
    assert response.text == (
        "step,t,host,rank,loss,host_,eval\n"
        f"0.0,{T0},node1,0,1.0,7.0,\n"
        f"1.0,{T0 + 1000},node1,0,0.5,,0.1\n"
        f"1.0,{T0 + 1000},node1,0,0.4,,\n"
        f"0.0,{T0},node1,1,2.0,7.0,\n"
        f"1.0,{T0 + 1000},node1,1,1.5,,0.1\n"
        f"1.0,{T0 + 1000},node1,1,1.4,,\n"
    )


def test_many_rows_are_reduced_to_buckets(tmp_path: Path, server: StoredServer) -> None:
    trainer = Trainer(tmp_path)
    for step in range(100):
        trainer.log(T0 + step, step, loss=float(step))
    server.take(tmp_path)
    (group,) = server.ask("runs/abc/history", max_points=10)["groups"]
    rows = table(server, "history", "parquet", max_points=10)
    assert rows["step"].to_pylist() == group["step"]
    assert rows["loss"].to_pylist() == group["series"]["loss"]
    assert rows["loss:n"].to_pylist() == group["n"]
    assert rows["rank"].null_count == rows.num_rows


def test_a_run_without_samples_is_a_table_without_rows(tmp_path: Path, local: Client) -> None:
    Monitor(tmp_path)
    for path in ("metrics", "history"):
        for form in ("arrow", "parquet"):
            assert table(local, path, form).num_rows == 0
            assert table(local, path, form, resolution="raw").num_rows == 0
    assert local.get("/api/v1/runs/abc/metrics?format=csv").text == "t,host,role\n"


def test_blocks_hold_a_bounded_number_of_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "MAX_CELLS", 100)
    keys = [f"k{number}" for number in range(10)]
    series = [
        Series(key, "node1", "monitor", np.arange(i, 95, 10), np.ones(10)[: len(np.arange(i, 95, 10))])
        for i, key in enumerate(keys)
    ]
    parts = list(blocks.sample_blocks(keys, series))
    assert [len(block[0].values) for block in parts] == [10] * 9 + [5]
    assert (
        sum(int(column.present.sum()) for block in parts for column in block if column.present is not None)
        == 95
    )


@pytest.mark.parametrize(
    ("header", "format"),
    [
        ("*/*", "json"),
        ("", "json"),
        ("text/html,application/xhtml+xml,*/*;q=0.8", "json"),
        ("text/csv", "csv"),
        ("application/json;q=0.5, TEXT/CSV", "csv"),
        ("application/vnd.apache.arrow.stream, */*;q=0.1", "arrow"),
        ("application/*", "json"),
        ("text/*;q=0.3", "csv"),
        ("*/*, application/json;q=0", "csv"),
        ("image/png", None),
        ("text/csv;q=0", None),
        ("text/csv;q=x", None),
        ("text/csv;q=nan", None),
        ("text/csv;q=inf, application/json;q=0.1", "json"),
    ],
)
def test_accept_headers(header: str, format: str | None) -> None:
    assert accepted_format(header) == format


def test_an_unsupported_format_is_rejected_with_the_supported_ones(tmp_path: Path, local: Client) -> None:
    Monitor(tmp_path)
    path = "/api/v1/runs/abc/metrics"
    refused = local.get(path, headers={"accept": "image/png"})
    assert refused.status_code == 406
    assert refused.json() == {
        "error": "Accept 'image/png' allows no supported format; expected one of application/json, text/csv, "
        "application/vnd.apache.arrow.stream, application/vnd.apache.parquet"
    }
    wrong = local.get(path, params={"format": "xlsx"})
    assert (wrong.status_code, "'json', 'csv', 'arrow' or 'parquet'" in wrong.text) == (422, True)
    assert local.get(path, params={"format": "csv", "after": ""}).status_code == 422
    assert local.get(path, params={"format": "csv", "t0": 5, "t1": 4}).status_code == 422
    accepted_csv = local.get(path, headers={"accept": "text/csv"})
    assert accepted_csv.headers["content-type"].startswith("text/csv")


def test_a_missing_pyarrow_is_reported_with_the_extra(
    tmp_path: Path, local: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    Monitor(tmp_path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    refused = local.get("/api/v1/runs/abc/metrics?format=parquet")
    assert (refused.status_code, "pip install 'runvitals[parquet]'" in refused.text) == (501, True)
    assert local.get("/api/v1/runs/abc/metrics?format=csv").status_code == 200
