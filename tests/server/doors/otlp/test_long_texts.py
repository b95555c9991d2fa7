"""Long names and attributes: they take neither time nor memory of others."""

from __future__ import annotations

from runvitals.model.limits import NAME_CHARACTERS
from runvitals.server.doors.otlp import protobuf_decoding
from runvitals.server.doors.otlp.conversion import Conversion
from runvitals.server.doors.otlp.series import RememberedRun, ResourceSeries
from runvitals.server.doors.routing import DEFAULT_RULES, route_of
from runvitals.server.http.body_limits import Limits
from tests.processor_time import measured
from tests.server.doors.otlp.messages import gauge, request

NOW_MS = 1_800_000_000_000
LONG = "x" * 1_000_000


def converted(body: bytes, run: RememberedRun) -> list[str]:
    """The keys that a request is stored under."""
    conversion = Conversion(NOW_MS, Limits())
    for resource in protobuf_decoding.decode(body):
        route = route_of(resource.attributes, DEFAULT_RULES)
        conversion.add(resource, ResourceSeries(resource.attributes, route, DEFAULT_RULES, run), run)
    assert list(conversion.envelopes())
    assert conversion.rejected == 0
    return sorted(run.keys)


def points(*texts: str) -> list[dict[str, object]]:
    time_ns = NOW_MS * 10**6
    return [{"time_unix_nano": time_ns, "as_double": 1.0, "attributes": {"a": text}} for text in texts]


def test_a_long_name_that_many_series_share_is_handled_once() -> None:
    texts = [str(number) for number in range(9000)]
    body = request({"service.name": "a", "container.name": LONG}, gauge(LONG, "1", *points(*texts)))
    encoded = body.SerializeToString()
    with measured() as cost:
        keys = converted(encoded, RememberedRun())
    assert cost.times < 100, "to handle it for each series takes 250 times as long as a million additions"
    assert (len(keys), max(map(len, keys))) == (9000, NAME_CHARACTERS)


def test_series_with_long_attributes_count_as_several() -> None:
    run = RememberedRun()
    body = request({}, gauge("m", "1", *points(*(f"{number}" * 50_000 for number in range(1, 10)))))
    converted(body.SerializeToString(), run)
    assert run.series > 9 * 100


def test_long_attributes_are_not_kept_decoded() -> None:
    before = protobuf_decoding._short_attributes.cache_info().currsize
    body = request({}, gauge("m", "1", *points("x" * 2000, "y" * 2000)))
    converted(body.SerializeToString(), RememberedRun())
    assert protobuf_decoding._short_attributes.cache_info().currsize == before
