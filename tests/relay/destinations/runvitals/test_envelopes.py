"""Splitting a batch into envelopes."""

from __future__ import annotations

from struct import unpack

from runvitals.model.batch_format import GAP_BITS
from runvitals.relay.batch import Batch, LogRow, RunFacts, WriterFacts
from runvitals.relay.destinations.runvitals.compression import BodyCompressor
from runvitals.relay.destinations.runvitals.envelopes import MAX_LOG_TABLES, split_batch

T0 = 1_760_000_000_000
FAR = 253_370_764_799_999


def test_far_future_row_does_not_shift_later_rows() -> None:
    batch = Batch(RunFacts("r", "p"), WriterFacts("train.h.1.1"), 0, 5)
    times_ms = [T0, FAR, T0, 5, FAR, T0 + 2000]
    batch.logs = [LogRow(seq, time_ms, seq, {"loss": 1.0}) for seq, time_ms in enumerate(times_ms)]
    (part,), last_ms = split_batch(batch, 0)
    assert list(part.times_ms) == [T0, FAR, T0 + 1, T0 + 2, FAR + 1, T0 + 2000]
    assert last_ms == T0 + 2000


def test_a_gap_of_a_merged_table_is_not_a_logged_nan() -> None:
    batch = Batch(RunFacts("r", "p"), WriterFacts("train.h.1.1"), 0, 50)
    rows = [{"loss": float("nan")}, *({f"key{number}": 1.0} for number in range(MAX_LOG_TABLES))]
    batch.logs = [LogRow(seq, T0 + seq, seq, values) for seq, values in enumerate(rows)]
    (part,), _ = split_batch(batch, 0)
    losses = dict(zip(part.keys, part.columns, strict=True))["loss"]  # type: ignore[union-attr]
    bits = unpack(f"={len(losses)}Q", losses.tobytes())
    assert len(bits) == MAX_LOG_TABLES + 1
    assert [one == GAP_BITS for one in bits] == [False] + [True] * MAX_LOG_TABLES


def test_what_is_compressed_is_not_compressed_again() -> None:
    compressor = BodyCompressor()
    body = compressor.body(bytes(8 * 100), [bytes(8 * 100)] * 60)
    few, many = bytes(100), bytes(1000)
    assert compressor.content(few + body, len(body)) == (few + body, "identity")
    content, encoding = compressor.content(many + body, len(body))
    assert encoding == "zstd"
    assert len(content) < 1000


def test_texts_and_so_on_of_rows_are_records_with_numbers_of_their_own() -> None:
    batch = Batch(RunFacts("r", "p"), WriterFacts("train.h.1.1"), 0, 70_000)
    array = {"_type": "histogram", "count": 2, "min": 0.0}
    rows = {1: {"note": "alone", "list": [1, "x"]}, 2: {"loss": 0.5, "note": "a", "ok": True, "array": array}}
    rows[65_536] = {"loss": 0.25, "inner": {"text": "b", "number": 1}}
    batch.logs = [LogRow(seq, T0 + seq, seq / 2, values) for seq, values in rows.items()]
    parts, _ = split_batch(batch, 0)
    assert len({part.seq for part in parts}) == len(parts) == 3  # one number is one envelope
    records = [record for part in parts for record in part.fields(BodyCompressor(), None).get("records", ())]
    assert len({number for number, _, _ in records}) == len(records)
    assert sorted((value["step"], value["key"], value["items"][0]["value"]) for *_, value in records) == [
        (0.5, "list", [1, "x"]), (0.5, "note", "alone"),
        (1.0, "note", "a"), (1.0, "ok", True), (32_768.0, "inner.text", "b"),
    ]  # fmt: skip
    tables = [part for part in parts if part.keys]
    halves = tables[0].select([0]).fields(BodyCompressor(), None)
    assert [value["key"] for *_, value in halves["records"]] == ["note", "ok"]
