"""The address of ClickHouse and its password."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from runvitals.store.samples.clickhouse import ClickHouseAddress, parse_address
from runvitals.store.samples.clickhouse.connection import ClickHouse
from runvitals.store.samples.interface import StoreError, StoreUnavailable
from tests.store.samples.clickhouse.server import ClickHouseServer


def test_defaults() -> None:
    assert parse_address("clickhouse://db.example", {}) == ClickHouseAddress("db.example", 8123)
    assert parse_address("clickhouses://otter@[::1]:9/vitals", {}) == ClickHouseAddress(
        "::1", 9, "vitals", "otter", tls=True
    )


def test_a_cluster() -> None:
    address = parse_address("clickhouse://db.example/vitals?cluster=fleet", {})
    assert address == ClickHouseAddress("db.example", 8123, "vitals", cluster="fleet")
    assert str(address) == "clickhouse://default@db.example:8123/vitals?cluster=fleet"


def test_the_password_is_in_the_environment_or_a_file(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3cret\n")
    for environment in (
        {"CLICKHOUSE_PASSWORD": "s3cret"},
        {"CLICKHOUSE_PASSWORD_FILE": str(tmp_path / "secret")},
    ):
        address = parse_address("clickhouse://otter@db.example/vitals", environment)
        assert address.password == "s3cret"
        assert "s3cret" not in f"{address} {address!r}"


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("clickhouse://otter:s3cret@db.example", "must not contain a password"),
        ("clickhouse:///vitals", "names no host"),
        ("clickhouse://db.example:http", "invalid port"),
        ("clickhouse://db.example/a;b", "invalid database"),
        ("clickhouse://db.example/a?secure=1", "'secure' is unknown"),
        ("clickhouse://db.example/a?cluster=a'b", "invalid cluster"),
        ("clickhouse://db.example/a?cluster=", "invalid cluster"),
        ("mysql://db.example", "must begin with clickhouse://"),
    ],
)
def test_an_invalid_address_is_rejected(address: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as error:
        parse_address(address, {})
    assert "s3cret" not in str(error.value)


def test_a_missing_file_of_the_password_is_named() -> None:
    with pytest.raises(OSError, match="could not read the password of ClickHouse from /nowhere"):
        parse_address("clickhouse://db.example", {"CLICKHOUSE_PASSWORD_FILE": "/nowhere"})


def test_errors_do_not_contain_the_password(clickhouse_server: ClickHouseServer) -> None:
    if clickhouse_server.kind == "chdb":
        return  # it has no users
    wrong = ClickHouseAddress("127.0.0.1", clickhouse_server.port, password="wr0ng")
    with closing(ClickHouse(wrong)) as clickhouse, pytest.raises(StoreError) as error:
        clickhouse.command("SELECT 1")
    assert "wr0ng" not in str(error.value)
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        ClickHouse(ClickHouseAddress("127.0.0.1", 9, password="wr0ng")).command("SELECT 1")
