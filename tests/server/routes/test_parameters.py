"""Invalid requests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.readers.journals.journals import Monitor, Training
from tests.server.client import Client


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("runs/nope", 404, "no run 'nope'"),
        (
            "runs/brave",
            404,
            "no run 'brave'",
        ),  # a beginning is not enough: an address must not change its meaning
        ("runs/..%2Fetc", 404, "there is no /api/v1/runs"),
        ("runs/.hidden", 404, "invalid run id"),
        ("runs/%00", 404, "invalid run id"),
        ("runs/" + "x" * 200, 422, "at most 128"),
        ("nothing", 404, "there is no /api/v1/nothing; /api/v1/openapi.json lists the routes"),
        ("runs?limit=0", 422, "limit='0': Input should be greater than or equal to 1"),
        ("runs?state=exploded", 422, "'running', 'finished'"),
        ("runs?after=junk", 422, "invalid after='junk'; expected the `next` of a previous page"),
        ("runs?sort=shoe", 422, "cannot sort runs by 'shoe'; expected one of id, name"),
        ("runs?where=lr>1", 422, "where: unknown field 'lr'; expected one of id, name"),
        ('runs?mongo_filter={"shoe":1}', 422, "unknown field 'shoe'; expected one of computeSeconds"),
        ("runs?mongo_filter={", 422, "the filter is not JSON"),
        ("aggregate?metric=disk.readMBps", 422, "aggregate its counter disk.in"),
        ("aggregate?metric=cpu&t0=5&t1=4", 422, "t1 (4) is before t0 (5)"),
        ("aggregate?metric=cpu&t0=0&bucket=1", 422, "at most 100,000 are allowed"),
        ("runs/brave-otter-1/metrics?max_points=1", 422, "max_points='1'"),
        ("runs/brave-otter-1/metrics?max_points=nan", 422, "valid integer"),
        ("runs/brave-otter-1/metrics?t0=99999999999999999999", 422, "t0="),
        ("runs/brave-otter-1/metrics?t0=5&t1=4", 422, "t1 (4) is before t0 (5)"),
        ("runs/brave-otter-1/metrics?resolution=fine", 422, "'auto' or 'raw'"),
        ("runs/brave-otter-1/live?after=junk", 422, "expected writer:number"),
        (
            "runs?projct=digits",
            422,
            "unknown parameter 'projct'; expected one of after, ",
        ),
        ("runs/brave-otter-1/metrics?key=cpu", 422, "unknown parameter 'key'; expected one of after, "),
        ("latest?keys=cpu&stat=running", 422, "unknown parameter 'stat'; expected one of "),
        ("about?limit=1", 422, "unknown parameter 'limit'; this route has none"),
    ],
)
def test_errors_name_what_is_wrong_and_what_is_allowed(
    tmp_path: Path, client: Client, path: str, status: int, text: str
) -> None:
    Monitor(tmp_path, "brave-otter-1")
    response = client.get(f"/api/v1/{path}")
    assert response.status_code == status
    assert response.headers["content-type"] == "application/json"
    assert text in response.json()["error"]


def test_other_methods_are_rejected(client: Client) -> None:
    response = client.request("DELETE", "/api/v1/runs")
    assert (response.status_code, response.json()) == (
        405,
        {"error": "DELETE /api/v1/runs: only GET is allowed"},
    )


@settings(max_examples=40)
@given(
    name=st.sampled_from(
        ["keys", "host", "t0", "t1", "max_points", "resolution", "after", "limit", "state", "last"]
    ),
    value=st.text(max_size=30),
    path=st.sampled_from(
        ["runs", "runs/abc", "runs/abc/metrics", "runs/abc/series", "runs/abc/history", "projects"]
    ),
)
def test_no_parameter_breaks_the_server(
    tmp_path_factory: pytest.TempPathFactory, name: str, value: str, path: str
) -> None:
    directory = tmp_path_factory.getbasetemp() / "fuzzed"
    if not directory.exists():
        training = Training(directory)
        training.advance(5)
        training.end(exit_code=0)
    response = Client(directory).get(f"/api/v1/{path}", params={name: value})
    assert response.status_code in (200, 404, 422), response.text
    json.loads(response.content)


def test_an_error_repeats_only_the_start_of_a_long_value(client: Client) -> None:
    refused = client.get(f"/api/v1/runs?limit={'9' * 20_000}")
    assert refused.status_code == 422
    assert len(refused.text) < 1000
