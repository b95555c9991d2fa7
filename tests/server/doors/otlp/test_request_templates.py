"""Requests that are like an earlier one are decoded by comparing them with it."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from runvitals.server.doors.otlp.message import Resource
from runvitals.server.doors.otlp.protobuf_decoding import decode
from runvitals.server.doors.otlp.request_templates import RequestTemplates
from tests.server.doors.otlp.messages import NO_VALUE, gauge, histogram, request, total

T = 1_700_000_000_000_000_000
POINTS = 60


def body(tick: int, *more: Any, host: str = "n1", names: str = "eth", **fields: Any) -> bytes:
    """A request of gauges and sums, with and without starts, as numbers of both kinds."""
    time = {"time_unix_nano": T + tick}
    points = [{**time, "as_double": tick + n / 2, "attributes": {names: f"{n:03}"}} for n in range(POINTS)]
    counts = [{**time, "start_time_unix_nano": T - tick, "as_int": tick - n, **fields} for n in range(3)]
    return request(
        {"host.name": host}, gauge("g", "1", *points), total("t", "By", *counts), *more
    ).SerializeToString()


def known(first: bytes) -> RequestTemplates:
    """Templates that have had a request twice."""
    templates = RequestTemplates()
    for _ in range(2):
        templates.add(first, decode(first))
    return templates


def said(resources: list[Resource]) -> Any:
    return [
        (
            (resource.attributes, metric.name, metric.unit, metric.kind, metric.is_monotonic),
            [(dict(resource.attributes_of(encoded)), t, value) for encoded, _, t, value in metric.numbers],
        )
        for resource in resources
        for metric in resource.metrics
    ]


def test_times_and_values_are_those_of_the_request() -> None:
    templates = known(body(1))
    resources = templates.read(body(2))
    assert resources is not None
    (_, gauges), (_, counts) = said(resources)
    assert gauges[:2] == [({"eth": "000"}, T + 2, 2.0), ({"eth": "001"}, T + 2, 2.5)]
    assert counts == [({}, T + 2, 2.0), ({}, T + 2, 1.0), ({}, T + 2, 0.0)]
    assert said(resources) == said(decode(body(2)))
    assert said(templates.read(body(1)) or []) == said(decode(body(1)))  # it was not changed


@pytest.mark.parametrize("other", [body(2, host="n2"), body(2, names="ib0"), body(2) + b"\x10\x00", b""])
def test_what_differs_is_not_taken_as_the_same(other: bytes) -> None:
    assert known(body(1)).read(other) is None


@pytest.mark.parametrize(
    "first",
    [
        body(1, histogram("h", "ms", {"time_unix_nano": T, "count": 1, "bucket_counts": [1]})),
        body(1, flags=NO_VALUE),
        body(1, gauge("empty", "1", {})),
        request({}, gauge("g", "1", {"time_unix_nano": T, "as_double": 1.0})).SerializeToString(),
    ],
)
def test_other_requests_are_no_templates(first: bytes) -> None:
    assert known(first).read(first) is None


def test_the_first_request_is_no_template() -> None:
    templates = RequestTemplates()
    templates.add(body(1), decode(body(1)))
    assert templates.read(body(1)) is None


def test_a_sender_whose_series_change_gets_another_template() -> None:
    templates = known(body(1))
    changed = body(1, names="ib0")
    for _ in range(20):
        if templates.read(changed) is None:
            templates.add(changed, decode(changed))
    assert templates.read(changed) is not None


def test_what_is_kept_of_requests_is_bounded_in_bytes() -> None:
    templates = RequestTemplates()
    hosts = [f"{number:03}" + "x" * 200_000 for number in range(60)]
    bodies = [body(1, host=host) for host in hosts]
    sent = sum(map(len, bodies))
    tracemalloc.start()
    try:
        for one in bodies:
            templates.add(one, [])
        seen, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert seen < sent / 10  # what was seen once is kept as a hash
    for one in bodies:
        templates.add(one, decode(one))
    assert templates.read(body(2, host=hosts[0])) is not None
    assert templates.read(body(2, host=hosts[-1])) is None
