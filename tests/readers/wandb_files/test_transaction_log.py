"""The container format of `.wandb` files, intact and damaged."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runvitals.readers.wandb_files.transaction_log import BLOCK_BYTES, HEAD, TransactionLog
from tests.readers.wandb_files.files import chunk, log


def read(data: bytes) -> tuple[list[bytes], int, bool]:
    log = TransactionLog(io.BytesIO(data), "run-abc.wandb")
    return list(log.records()), log.damaged, log.cut


@given(st.lists(st.integers(0, 3 * BLOCK_BYTES), max_size=6))
def test_records_of_any_length(lengths: list[int]) -> None:
    payloads = [bytes((i + 1,)) * length for i, length in enumerate(lengths)]
    assert read(log(*payloads)) == (payloads, 0, False)


def test_file_that_is_still_being_written() -> None:
    whole = log(b"first", b"second" * 9000)
    for length in range(len(HEAD), len(whole), 997):
        records, damaged, cut = read(whole[:length])
        assert (records, damaged) == ([b"first"] if length >= len(HEAD) + 12 else [], 0)
        assert cut == (length not in (len(HEAD), len(HEAD) + 12))


def test_damage_loses_the_rest_of_its_block() -> None:
    payloads = [bytes((i,)) * 5000 for i in range(20)]
    data = bytearray(log(*payloads))
    data[BLOCK_BYTES + 100] ^= 1
    records, damaged, cut = read(bytes(data))
    # Record 6 spans the first two blocks, record 13 the next two.
    assert records == payloads[:6] + payloads[14:]
    assert (damaged, cut) == (2, False)


def test_record_without_its_first_chunk() -> None:
    assert read(HEAD + chunk(3, b"b") + chunk(4, b"c") + chunk(1, b"whole")) == ([b"whole"], 1, False)


@given(st.binary(max_size=200))
def test_arbitrary_bytes_do_not_raise(data: bytes) -> None:
    read(HEAD + data)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "not a .wandb"),
        (b"PK\3\4abc", "not a .wandb"),
        (b":W&B\xe1\xbe\1", "unsupported format"),
    ],
)
def test_other_files_are_rejected(data: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=f"run-abc.wandb: {why}"):
        read(data)
