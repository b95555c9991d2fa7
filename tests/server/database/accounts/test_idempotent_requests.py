"""Requests with idempotency keys, on both databases: one of several processes carries each out."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import count

import pytest

from runvitals.server.access.storage import idempotent_requests
from runvitals.server.access.storage.idempotent_requests import (
    KEPT_MS,
    LEASE_MS,
    EarlierRequest,
    IdempotentRequestTable,
    RequestLease,
)
from runvitals.server.account_store import AccountStore
from runvitals.server.metadata_store import open_metadata_store

T0 = 1_800_000_000_000


@pytest.fixture
def table(accounts: AccountStore) -> IdempotentRequestTable:
    return accounts.idempotent_requests


def begun(table: IdempotentRequestTable, digest: bytes = b"key", now_ms: int = T0) -> RequestLease:
    attempt = table.begin(digest, "user:1", b"request", now_ms)
    assert isinstance(attempt, RequestLease)
    return attempt


def test_the_first_response_is_kept_for_a_day(table: IdempotentRequestTable) -> None:
    attempt = begun(table)
    again = table.begin(b"key", "user:1", b"request", T0 + 1)
    assert again == EarlierRequest(b"request", None, None)
    table.finish(attempt, 201, b"sealed")
    for request in (b"request", b"other"):
        earlier = table.begin(b"key", "user:1", request, T0 + KEPT_MS - 1)
        assert earlier == EarlierRequest(b"request", 201, b"sealed")
    assert table.purge(T0 + KEPT_MS - 1) == 0
    assert isinstance(table.begin(b"key", "user:1", b"other", T0 + KEPT_MS), RequestLease)
    assert table.purge(T0 + KEPT_MS) == 0
    assert table.purge(T0 + 2 * KEPT_MS) == 1


def test_a_forgotten_request_is_carried_out_again(table: IdempotentRequestTable) -> None:
    table.forget(begun(table))
    begun(table)


def test_the_request_of_a_lost_process_is_taken_over(table: IdempotentRequestTable) -> None:
    lost = begun(table)
    assert isinstance(table.begin(b"key", "user:1", b"request", T0 + LEASE_MS - 1), EarlierRequest)
    assert isinstance(table.begin(b"key", "user:1", b"other", T0 + LEASE_MS), EarlierRequest)
    lease = begun(table, now_ms=T0 + LEASE_MS)
    table.finish(lost, 201, b"late")  # it was only slow: the other process decides
    table.forget(lost)
    running = table.begin(b"key", "user:1", b"request", T0 + LEASE_MS)
    assert running == EarlierRequest(b"request", None, None)
    table.finish(lease, 201, b"sealed")
    assert table.begin(b"key", "user:1", b"request", T0 + 2 * LEASE_MS) == EarlierRequest(
        b"request", 201, b"sealed"
    )


def test_one_of_several_processes_carries_it_out(address: str) -> None:
    with ExitStack() as stack:
        tables = [
            stack.enter_context(open_metadata_store(address)).accounts.idempotent_requests for _ in range(3)
        ]
        with ThreadPoolExecutor(6) as threads:
            earlier = list(
                threads.map(lambda table: table.begin(b"key", "user:1", b"request", T0), tables * 4)
            )
    assert sum(isinstance(each, RequestLease) for each in earlier) == 1


def test_the_oldest_of_a_principal_are_forgotten(
    table: IdempotentRequestTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotent_requests, "MAX_KEPT", 3)
    times = count(T0)
    table.begin(b"theirs", "user:2", b"request", next(times))
    for number in range(5):
        table.finish(begun(table, b"%d" % number, next(times)), 201, b"sealed")
    assert isinstance(table.begin(b"theirs", "user:2", b"request", T0 + 10), EarlierRequest)
    for number in (2, 3, 4):
        earlier = table.begin(b"%d" % number, "user:1", b"request", T0 + 10)
        assert isinstance(earlier, EarlierRequest)
    begun(table, b"1", T0 + 10)


def test_the_oldest_responses_beyond_a_size_are_forgotten(
    table: IdempotentRequestTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotent_requests, "MAX_KEPT_BYTES", 100)
    times = count(T0)
    theirs = table.begin(b"theirs", "user:2", b"request", next(times))
    assert isinstance(theirs, RequestLease)
    table.finish(theirs, 201, b"x" * 90)
    for number, size in enumerate((60, 30, 40, 20, 500)):
        table.finish(begun(table, b"%d" % number, next(times)), 201, b"x" * size)
        if number == 3:  # 30 + 40 + 20
            for kept in (b"1", b"2", b"3"):
                assert isinstance(table.begin(kept, "user:1", b"request", T0 + 10), EarlierRequest)
            table.forget(begun(table, b"0", T0 + 10))
    assert table.begin(b"4", "user:1", b"request", T0 + 10) == EarlierRequest(b"request", 201, b"x" * 500)
    begun(table, b"3", T0 + 10)
    assert isinstance(table.begin(b"theirs", "user:2", b"request", T0 + 10), EarlierRequest)
