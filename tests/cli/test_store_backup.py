"""`runvitals store backup` and `restore` while servers run, for every pair of engines."""

from __future__ import annotations

import hashlib
import itertools
import os
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path

import httpx
import pytest

from runvitals.cli import main
from runvitals.server.database import migration
from runvitals.server.database.database import Database
from runvitals.server.database.migration import downgrade, is_empty, newest, present
from runvitals.server.metadata_store import open_metadata_store
from tests.cli.test_server import envelope, serving, values
from tests.cli.test_several_servers import Stores, stores
from tests.forked_command import ForkedCommand
from tests.patience import PATIENCE_S
from tests.server.database import postgresql as postgres
from tests.server.database.next_revision import NEXT, later_version

__all__ = ["stores"]
PAIRS = ["clickhouse postgresql", "clickhouse sqlite", "folder postgresql", "folder sqlite"]
START_MS = time.time_ns() // 1_000_000 - 600_000
NewPlace = Callable[[], list[str]]


@pytest.fixture(params=PAIRS)
def new_place(request: pytest.FixtureRequest, stores: Stores, tmp_path: Path) -> NewPlace:
    """Makes the options of a server for which nothing was stored yet."""
    samples, metadata = request.param.split()
    numbers = iter(range(100))

    def make() -> list[str]:
        folder, (clickhouse, *postgresql) = tmp_path / f"place-{next(numbers)}", stores.new()
        options = ["--store", clickhouse if samples == "clickhouse" else str(folder / "store")]
        return [*options, "--dir", str(folder), *(postgresql if metadata == "postgresql" else ())]

    return make


def start(options: Sequence[str]) -> AbstractContextManager[tuple[ForkedCommand, httpx.Client]]:
    """A server with these options, the first of which is --store."""
    return serving(*options[1:])


def post(client: httpx.Client, seq: int, run: str = "curl-1") -> bool:
    """Send an envelope. Returns whether it was stored, and not before."""
    times = [START_MS + 10 * seq + tick for tick in range(3)]  # the same whenever it is sent
    response = client.post("/api/v1/ingest", json={**envelope(seq, run=run), "t": times})
    assert response.status_code == 200, response.text
    return bool(response.json()["stored"])


def upload(client: httpx.Client, content: bytes) -> None:
    sent = client.put(
        f"/api/v1/runs/curl-1/files/{hashlib.sha256(content).hexdigest()}?offset=0&size={len(content)}",
        content=content,
        headers={"content-type": "application/octet-stream"},
    )
    assert sent.json()["complete"], sent.text


def numbers_of(client: httpx.Client, run: str = "curl-1") -> set[float]:
    return set(values(client, run))


def test_a_backup_of_a_server_that_receives_is_restored_to_another_place(
    new_place: NewPlace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new, copy = new_place(), new_place(), str(tmp_path / "backup")
    with start(old) as (_, client):
        for seq in range(5):
            assert post(client, seq)
        upload(client, b"a file")
        receiving, sent = threading.Event(), [4]

        def go_on() -> None:
            while not receiving.is_set():
                sent[0] += 1
                post(client, sent[0])
                post(client, sent[0], run=f"new-{sent[0]}")

        thread = threading.Thread(target=go_on)
        thread.start()
        try:
            assert main(["store", "backup", copy, *old]) == 0
        finally:
            receiving.set()
            thread.join()
        assert post(client, sent[0] + 1, run="later")
    with start(old) as (_, client):  # another start, and more runs than the backup knows
        assert post(client, 0, run="later-still")
    assert all(not path.stat().st_mode & 0o077 for path in Path(copy).rglob("*"))
    printed = capsys.readouterr()
    assert f"{copy}: " in printed.out
    assert printed.err == ""

    assert main(["store", "restore", copy, *new]) == 0
    with start(new) as (_, client):
        assert client.get("/readyz").json()["warnings"] == []
        assert numbers_of(client) >= {float(value) for value in range(15)}
        for seq in range(5):
            assert not post(client, seq)
        content = client.get(f"/api/v1/runs/curl-1/files/{hashlib.sha256(b'a file').hexdigest()}")
        assert content.content == b"a file"
        # What was sent meanwhile is complete, or it is not there and is sent again.
        for seq in range(5, sent[0] + 1):
            post(client, seq)
            post(client, seq, run=f"new-{seq}")
        assert numbers_of(client) == {float(value) for value in range(3 * sent[0] + 3)}
        for seq in range(5, sent[0] + 1):
            assert numbers_of(client, f"new-{seq}") == {float(3 * seq + tick) for tick in range(3)}
        assert post(client, 7, run="newest")
        assert numbers_of(client, "newest") == {21.0, 22.0, 23.0}
    assert main(["store", "check", *new]) == 0, capsys.readouterr().out


def test_a_backup_is_not_restored_over_what_is_there(
    new_place: NewPlace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, other, copy = new_place(), new_place(), str(tmp_path / "backup")
    for folder in (old, other):
        with start(folder) as (_, client):
            assert post(client, 0)
    assert main(["store", "backup", copy, *old]) == 0
    capsys.readouterr()
    # Where another server was; where this one was; and where only the metadata were lost.
    for folder in (other, old, [*old, "--metadata", str(tmp_path / "new.db")]):
        assert main(["store", "restore", copy, *folder]) == 1
        stderr = capsys.readouterr().err
        assert any(word in stderr for word in ("not empty", "already", "has metadata of")), stderr
    with start(other) as (_, client):
        assert numbers_of(client) == {0.0, 1.0, 2.0}


def failing(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a program on PATH that writes its arguments and the password to a file, and fails."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / program).write_text(
        f'#!/bin/sh\necho "$@ / $PGPASSWORD" > {tmp_path}/arguments\necho "server version: 99" >&2\nexit 1\n'
    )
    (folder / program).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


@pytest.fixture
def options(stores: Stores, tmp_path: Path) -> list[str]:
    """Of a server with ClickHouse and PostgreSQL."""
    return ["--store", *stores.new(), "--dir", str(tmp_path / "data")]


def test_a_backup_of_before_an_upgrade_is_restored_and_upgraded_again(
    options: list[str], stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with start(options) as (_, client):
        assert post(client, 0)
    assert main(["store", "backup", str(tmp_path / "backup"), *options]) == 0
    before = newest()
    monkeypatch.setattr(migration, "FOLDER", later_version(tmp_path / "later"))
    new = ["--store", *stores.new(), "--dir", str(tmp_path / "new")]
    assert main(["store", "restore", str(tmp_path / "backup"), *new]) == 0
    with closing(Database(new[3])) as restored:
        assert present(restored) == before
        open_metadata_store(new[3]).close()
        assert present(restored) == NEXT
        downgrade(restored, before)
    with start(new) as (_, client):  # of the earlier version
        assert numbers_of(client) == {0.0, 1.0, 2.0}
        assert post(client, 1)


@pytest.mark.parametrize("samples", ["clickhouse", "folder"])
def test_no_server_starts_with_a_restore_that_was_interrupted(
    options: list[str],
    samples: str,
    stores: Stores,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with start(options) as (_, client):
        assert post(client, 0)
    assert main(["store", "backup", str(tmp_path / "backup"), *options]) == 0
    failing("pg_restore", tmp_path, monkeypatch)
    numbers = itertools.count()

    def place() -> list[str]:
        clickhouse, *metadata = stores.new()
        where = clickhouse if samples == "clickhouse" else str(tmp_path / f"store-{next(numbers)}")
        return ["--store", where, *metadata, "--dir", str(tmp_path / "new")]

    new = place()
    assert main(["store", "restore", str(tmp_path / "backup"), *new]) == 1
    assert "pg_restore of postgresql://" in capsys.readouterr().err
    refused = ForkedCommand("server", "--listen", "127.0.0.1:0", *new)
    _, output = refused.communicate(timeout=PATIENCE_S)
    assert refused.returncode == 1
    assert "does not belong to the store" in output
    (tmp_path / "bin" / "pg_restore").unlink()
    new = place()
    assert main(["store", "restore", str(tmp_path / "backup"), *new]) == 0
    with start(new) as (_, client):
        assert numbers_of(client) == {0.0, 1.0, 2.0}


def test_batches_that_wait_on_a_server_keep_their_ids_after_an_older_backup_was_restored(
    options: list[str], stores: Stores, tmp_path: Path
) -> None:
    """They may be of runs that were assigned an id after the backup."""
    with start(options) as (_, client):
        assert post(client, 0)
        assert main(["store", "backup", str(tmp_path / "backup"), *options]) == 0
        assert post(client, 0, run="after-the-backup")
        stores.clickhouse.kill()
        assert post(client, 1)
        assert post(client, 1, run="after-the-backup")  # both wait
    stores.clickhouse.start()
    new = ["--store", *stores.new(), "--dir", str(tmp_path / "data")]
    assert main(["store", "restore", str(tmp_path / "backup"), *new]) == 0
    with start(new) as (_, client):
        assert post(client, 5, run="another-run")
        assert numbers_of(client, "another-run") == {15.0, 16.0, 17.0}
        assert numbers_of(client) == {0.0, 1.0, 2.0, 3.0, 4.0, 5.0}


def test_clickhouse_copied_by_its_own_means_before_postgresql_is_a_backup(
    options: list[str], stores: Stores, tmp_path: Path
) -> None:
    with start(options) as (_, client):
        assert post(client, 0)
    new = ["--store", *stores.new(), "--dir", str(tmp_path / "new")]
    tables = ("samples", "batches", "extents", "series", "pairing", "format")
    copy_tables(stores, options[1], new[1], tables)
    with start(options) as (_, client):
        assert post(client, 0, run="between")
    dump = tmp_path / "metadata.dump"
    subprocess.run(["pg_dump", "-Fc", "-f", dump, "-d", options[3]], check=True)
    subprocess.run(["pg_restore", "--exit-on-error", "-1", "--no-owner", "-d", new[3], dump], check=True)
    with start(new) as (_, client):
        assert numbers_of(client) == {0.0, 1.0, 2.0}
        # Its run is known, and its samples are sent again.
        assert post(client, 0, run="between")
        assert numbers_of(client, "between") == {0.0, 1.0, 2.0}


def copy_tables(stores: Stores, old: str, new: str, tables: Sequence[str]) -> None:
    from runvitals.store.samples.clickhouse import ClickHouseStore, parse_address
    from runvitals.store.samples.clickhouse.connection import ClickHouse

    with ClickHouseStore(parse_address(new), os.path.join(stores.clickhouse.folder, "copying")):
        pass  # makes the tables
    clickhouse = ClickHouse(parse_address(new))
    for table in tables[:-1]:
        clickhouse.command(f"INSERT INTO {table} SELECT * FROM {parse_address(old).database}.{table}")
    clickhouse.close()


def test_the_password_of_postgresql_is_not_among_the_arguments_of_a_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if postgres.programs() is None:
        pytest.skip("PostgreSQL is not installed")
    address = postgres.temporary_server().make("secret")
    with serving(tmp_path / "store", "--metadata", address) as (_, client):
        assert post(client, 0)
    failing("pg_dump", tmp_path, monkeypatch)
    backup = ["store", "backup", str(tmp_path / "backup"), "--store", str(tmp_path / "store")]
    named = address.replace("postgres@", "postgres:s3cret-word@")
    assert main([*backup, "--metadata", named]) == 1
    stderr = capsys.readouterr().err
    assert "failed: server version: 99" in stderr
    assert "s3cret-word" not in stderr
    arguments, _, password = (tmp_path / "arguments").read_text().strip().partition(" / ")
    assert "s3cret-word" not in arguments
    assert password == "s3cret-word"
    restore = ["store", "restore", str(tmp_path / "backup"), "--store", str(tmp_path / "new")]
    assert main([*restore, "--metadata", address]) == 1
    assert "has no metadata: neither catalogue.db nor metadata.dump" in capsys.readouterr().err
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main([*backup[:2], str(tmp_path / "other"), *backup[3:], "--metadata", address]) == 1
    assert "pg_dump is not installed" in capsys.readouterr().err


def test_an_empty_database_is_not_backed_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if postgres.programs() is None:
        pytest.skip("PostgreSQL is not installed")
    server = postgres.temporary_server()
    with serving(tmp_path / "store", "--metadata", server.make("used")) as (_, client):
        assert post(client, 0)
    backup = ["store", "backup", str(tmp_path / "backup"), "--store", str(tmp_path / "store")]
    assert main([*backup, "--metadata", server.make("unused")]) == 1
    assert "is not a metadata store: it is empty" in capsys.readouterr().err
    assert not (tmp_path / "backup").exists()
    database = Database(server.address("unused"))
    assert is_empty(database)
    database.close()
