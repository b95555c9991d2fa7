"""The container of `.wandb` files, whole and damaged."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runvitals.wandb_files.transaction_log import BLOCK_BYTES, HEAD, TransactionLog
from tests.wandb_files.files import chunk, log


def read(data: bytes) -> tuple[list[bytes], int, bool]:
    found = TransactionLog(io.BytesIO(data), "run-abc.wandb")
    return list(found.records()), found.damaged, found.cut


@given(st.lists(st.integers(0, 3 * BLOCK_BYTES), max_size=6))
def test_records_of_any_length(lengths: list[int]) -> None:
    payloads = [bytes((i + 1,)) * length for i, length in enumerate(lengths)]
    assert read(log(*payloads)) == (payloads, 0, False)


def test_a_file_that_is_still_written_to() -> None:
    whole = log(b"first", b"second" * 9000)
    for length in range(len(HEAD), len(whole), 997):
        records, damaged, cut = read(whole[:length])
        assert (records, damaged) == ([b"first"] if length >= len(HEAD) + 12 else [], 0)
        assert cut == (length not in (len(HEAD), len(HEAD) + 12))


def test_damage_costs_the_rest_of_its_block() -> None:
    payloads = [bytes((i,)) * 5000 for i in range(20)]
    data = bytearray(log(*payloads))
    data[BLOCK_BYTES + 100] ^= 1
    records, damaged, cut = read(bytes(data))
    # Number 6 lies across the first two blocks, number 13 across the next two.
    assert records == payloads[:6] + payloads[14:]
    assert (damaged, cut) == (2, False)


def test_a_continuation_without_its_beginning() -> None:
    assert read(HEAD + chunk(3, b"b") + chunk(4, b"c") + chunk(1, b"whole")) == ([b"whole"], 1, False)


@given(st.binary(max_size=200))
def test_no_bytes_break_it(data: bytes) -> None:
    read(HEAD + data)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "not a .wandb"),
        (b"PK\3\4abc", "not a .wandb"),
        (b":W&B\xe1\xbe\1", "unsupported format"),
    ],
)
def test_other_files_are_refused(data: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=f"run-abc.wandb: {why}"):
        read(data)
