"""An envelope that a door makes of arrays is taken as one that a client sends in bytes."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
import pytest

from runvitals.server.doors.recording import samples
from runvitals.server.http.body_limits import Limits
from runvitals.server.http.request_errors import HttpRejection
from runvitals.server.ingest.envelope import Envelope, decode_envelopes
from runvitals.server.ingest.sender_rights import WithoutAccounts
from runvitals.server.ingest.usage_marks import envelope_bytes
from runvitals.server.ingest.validation import EnvelopeValidator, ValidEnvelope
from runvitals.server.ingest.writer_registry import WriterRegistry
from runvitals.server.metadata_store import open_metadata_store

T0 = 1_760_000_000_000
KEYS = ["loss", "schön"]
LIMITS = Limits(keys=3)


@pytest.fixture(scope="module")
def validator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EnvelopeValidator]:
    with open_metadata_store(str(tmp_path_factory.mktemp("forms") / "catalogue.db")) as store:
        writers = WriterRegistry(store)
        yield EnvelopeValidator(store.metrics, writers, LIMITS)
        writers.close()


def validate(validator: EnvelopeValidator, envelope: Envelope) -> ValidEnvelope:
    access = WithoutAccounts().known([])
    assert access is not None
    return validator.validate(envelope, access, T0, 1 << 20)


def sent(keys: list[str], times: list[int], rows: list[list[float]], steps: list[float] | None) -> Envelope:
    """What a client sends: the rows as bytes, column by column."""
    body = {
        "run": "r",
        "writer": "w",
        "seq": 1,
        "keys": keys,
        "t": np.array(times, "<i8").tobytes(),
        "v": np.array(rows, "<f8").tobytes(order="F"),
    }
    if steps is not None:
        body["step"] = np.array(steps, "<f8").tobytes()
    (envelope,), _ = decode_envelopes(msgspec.msgpack.encode(body), "application/msgpack", LIMITS)
    return envelope


def made(keys: list[str], times: list[int], rows: list[list[float]], steps: list[float] | None) -> Envelope:
    return samples("r", "w", keys, times, np.array(rows), steps=steps, seq=1)


@pytest.mark.parametrize("steps", [None, [1.0, 2.0]])
def test_rows_and_size_are_the_same(validator: EnvelopeValidator, steps: list[float] | None) -> None:
    rows = (KEYS, [T0 - 5, T0], [[1.0, 2.0], [np.nan, 4.0]], steps)
    of_client, of_door = validate(validator, sent(*rows)), validate(validator, made(*rows))
    assert of_client.columns is not None
    assert of_door.columns is not None
    np.testing.assert_array_equal(of_door.columns.values, of_client.columns.values)
    assert of_door.columns.t.tolist() == of_client.columns.t.tolist()
    assert (of_door.columns.first_ms, of_door.last_ms) == (of_client.columns.first_ms, of_client.last_ms)
    assert of_door.keys == of_client.keys == tuple(KEYS)
    assert envelope_bytes(of_door) == envelope_bytes(of_client)


@pytest.mark.parametrize(
    ("keys", "t", "steps"),
    [
        (["a", "b", "c", "d"], T0, None),
        (["a", "a"], T0, None),
        (["a", ""], T0, None),
        (KEYS, 5, None),
        (KEYS, T0, [float("nan")]),
    ],
    ids=["too many keys", "a key twice", "an empty key", "a time in 1970", "no number as step"],
)
def test_what_is_refused_is_the_same(
    validator: EnvelopeValidator, keys: list[str], t: int, steps: list[float] | None
) -> None:
    refused = []
    for form in (sent, made):
        with pytest.raises(HttpRejection) as error:
            validate(validator, form(keys, [t], [[1.0] * len(keys)], steps))
        refused.append((error.value.status, error.value.text))
    assert refused[0] == refused[1]
