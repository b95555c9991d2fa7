"""`runvitals backup` and `restore` while servers run, for every pair of engines."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import httpx
import pytest

from runvitals.cli import main
from runvitals.server.backup.manifest import read_manifest
from runvitals.server.backup.progress import Progress
from runvitals.server.database.database import Database
from runvitals.server.database.migration import downgrade, is_empty, newest, present
from runvitals.store.errors import StoreError
from tests.cli.test_server import envelope, serving, values
from tests.cli.test_several_servers import Stores, stores
from tests.cli.test_upgrade import servers_of
from tests.forked_command import ForkedCommand, ForkedProcess
from tests.patience import PATIENCE_S, eventually

__all__ = ["stores"]
PAIRS = [
    ("clickhouse postgresql", "folder sqlite"),
    ("clickhouse sqlite", "clickhouse sqlite"),
    ("folder postgresql", "folder postgresql"),
    ("folder sqlite", "clickhouse postgresql"),
]
START_MS = time.time_ns() // 1_000_000 - 600_000
FILE = b"a file that is found again"
NewPlace = Callable[[str], list[str]]


class Made(NamedTuple):
    """A server that has ended, and the folder of its backup."""

    options: list[str]
    folder: Path


@pytest.fixture
def new_place(stores: Stores, tmp_path: Path) -> NewPlace:
    """Makes the options of a server for which nothing was stored yet."""
    numbers = iter(range(100))

    def make(pair: str) -> list[str]:
        samples, metadata = pair.split()
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


@pytest.mark.parametrize("pairs", PAIRS)
def test_a_backup_of_a_server_that_receives_is_restored_to_another_pair(
    pairs: tuple[str, str], new_place: NewPlace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (old, new), copy = map(new_place, pairs), str(tmp_path / "backup")
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
            assert main(["backup", copy, *old]) == 0
        finally:
            receiving.set()
            thread.join()
        assert post(client, sent[0] + 1, run="later")
    with start(old) as (_, client):  # another start, and more runs than the backup knows
        assert post(client, 0, run="later-still")
    assert all(not path.stat().st_mode & 0o077 for path in Path(copy).rglob("*"))
    printed = capsys.readouterr()
    assert f"{copy}: a backup of " in printed.out
    assert printed.err.startswith("runvitals: copying samples from ")
    assert main(["restore", copy, "--check"]) == 0

    assert main(["restore", copy, *new]) == 0
    assert main(["server", "check", "--listen", "127.0.0.1:0", *new]) == 0
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
    old, other, copy = new_place("folder sqlite"), new_place("folder postgresql"), str(tmp_path / "backup")
    for folder in (old, other):
        with start(folder) as (_, client):
            assert post(client, 0)
    assert main(["backup", copy, *old]) == 0
    capsys.readouterr()
    # Where another server was; where this one was; and where only the metadata were lost.
    for folder in (other, old, [*old, "--metadata", str(tmp_path / "new.db")]):
        assert main(["restore", copy, *folder]) == 1
        stderr = capsys.readouterr().err
        assert any(word in stderr for word in ("not empty", "already")), stderr
    with start(other) as (_, client):
        assert numbers_of(client) == {0.0, 1.0, 2.0}


@pytest.fixture
def options(stores: Stores, tmp_path: Path) -> list[str]:
    """Of a server with ClickHouse and PostgreSQL."""
    return ["--store", *stores.new(), "--dir", str(tmp_path / "data")]


@pytest.mark.parametrize("into", ["folder sqlite", "folder postgresql"])
def test_a_backup_of_before_an_upgrade_is_restored_and_upgraded(
    into: str, options: list[str], new_place: NewPlace, tmp_path: Path
) -> None:
    with start(options) as (_, client):
        assert post(client, 0)
    with closing(Database(options[3])) as database:
        eventually(lambda: servers_of(options[3]) == 0)
        downgrade(database, "0047")
    assert main(["backup", str(tmp_path / "backup"), *options]) == 0
    new = new_place(into)
    assert main(["restore", str(tmp_path / "backup"), *new]) == 0
    address = new[-1] if "postgresql" in into else f"{new[1]}/catalogue.db"
    with closing(Database(address)) as restored:
        assert present(restored) == "0047"
    with start(new) as (_, client):
        assert numbers_of(client) == {0.0, 1.0, 2.0}
        assert post(client, 1)


@pytest.fixture(scope="module")
def made(stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A server with ClickHouse and PostgreSQL that has ended, and its backup."""
    folder = tmp_path_factory.mktemp("made")
    options = ["--store", *stores.new(), "--dir", str(folder / "data")]
    with start(options) as (_, client):
        assert post(client, 0)
        upload(client, FILE)
    assert main(["backup", str(folder / "backup"), *options]) == 0
    assert main(["backup", str(folder / "backup.tar"), *options]) == 0
    return Made(options, folder)


def dies_at(point: str, *command: str) -> int:
    """Run a command, which is killed when it calls a function."""
    module, _, name = point.rpartition(".")
    killed = partial(os.kill, os.getpid(), signal.SIGKILL)
    mock.patch.object(import_module(module), name, side_effect=lambda *_: killed()).start()
    return main(list(command))


def kill_at(point: str, *command: str) -> None:
    process = ForkedProcess(dies_at, [f"runvitals.server.{point}", *command], os.environ)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize("point", ["database.copying.set_highest_id", "backup.backup.write_manifest"])
def test_a_backup_that_was_killed_is_not_taken_for_one(
    point: str, made: Made, new_place: NewPlace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kill_at(point, "backup", str(tmp_path / "copy"), *made.options)
    for command in (["--check"], new_place("folder sqlite")):
        assert main(["restore", str(tmp_path / "copy"), *command]) == 1
        assert f"{tmp_path / 'copy'} is no complete backup" in capsys.readouterr().err
    kill_at(point, "backup", str(tmp_path / "copy.tar"), *made.options)
    assert not (tmp_path / "copy.tar").exists()
    assert main(["backup", str(tmp_path / "copy.tar"), *made.options]) == 1
    assert f"{tmp_path / 'copy.tar.unfinished'} exists already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("into", "point"),
    [
        ("folder sqlite", "backup.restore._copy_and_skip_ids"),
        ("folder postgresql", "database.copying.set_highest_id"),
        ("clickhouse postgresql", "database.copying.set_highest_id"),
    ],
)
def test_no_server_starts_with_a_restore_that_was_killed(
    into: str, point: str, made: Made, new_place: NewPlace
) -> None:
    new = new_place(into)
    kill_at(point, "restore", str(made.folder / "backup.tar"), *new)
    refused = ForkedCommand("server", "--listen", "127.0.0.1:0", *new)
    _, output = refused.communicate(timeout=PATIENCE_S)
    assert refused.returncode == 1
    assert "does not belong to the store" in output or "catalogue.db is missing" in output


def test_a_move_of_metadata_that_was_killed_left_nothing(
    made: Made, stores: Stores, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    eventually(lambda: servers_of(made.options[3]) == 0)
    for target in (stores.new()[-1], str(tmp_path / "copy.db")):
        kill_at("database.copying.set_highest_id", "store", "migrate", made.options[3], target)
        assert not (tmp_path / "copy.db").exists()
        assert main(["store", "migrate", made.options[3], target]) == 0  # goes through, as into a new one
        assert "run: 1 rows, digest " in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["copy.db"]


@pytest.mark.parametrize("name", ["backup", "backup.tar"])
def test_what_is_damaged_is_found_and_not_restored(
    name: str, made: Made, new_place: NewPlace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy, digest = tmp_path / name, hashlib.sha256(FILE).hexdigest()
    if name == "backup":
        shutil.copytree(made.folder / name, copy)
        content = copy / "files" / "contents" / digest[:2] / digest
    else:
        content = Path(shutil.copy(made.folder / name, copy))
    content.write_bytes(content.read_bytes().replace(b"is found", b"is other"))
    assert main(["restore", str(copy), "--check"]) == 1
    assert (
        f"files/contents/{digest[:2]}/{digest} is damaged: it has {len(FILE)} bytes"
        in capsys.readouterr().out
    )
    new = new_place("folder sqlite")
    assert main(["restore", str(copy), *new]) == 1
    assert "is damaged: try another backup" in capsys.readouterr().err
    assert not (Path(new[1]) / "catalogue.db").exists()
    if name == "backup":
        content.unlink()
        assert main(["restore", str(copy), "--check"]) == 1
        assert f"{digest} is missing" in capsys.readouterr().out


@pytest.mark.parametrize("content", [b"", b"no tar file", b"\0" * 4096])
def test_what_is_no_backup_is_refused(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file.tar").write_bytes(content)
    for command in (["--check"], ["--store", str(tmp_path / "new")]):
        assert main(["restore", str(tmp_path / "file.tar"), *command]) == 1
        assert f"{tmp_path / 'file.tar'} is no " in capsys.readouterr().err


def test_a_backup_says_what_it_has(made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = read_manifest(str(made.folder / "backup.tar"))
    assert (manifest.revision, manifest.rows["run"], manifest.contents) == (newest(), 1, 1)
    assert "s3cret" not in str(manifest)
    sums = ["sha256sum", "--check", "--quiet", "SHA256SUMS"]
    subprocess.run(sums, cwd=made.folder / "backup", check=True)
    names = b"0" * 64 + b"  ../secrets.key\n"
    other = {**json.loads((made.folder / "backup" / "manifest.json").read_bytes())}
    other["sums"] = hashlib.sha256(names).hexdigest()
    (tmp_path / "manifest.json").write_text(json.dumps(other))
    (tmp_path / "SHA256SUMS").write_bytes(names)
    for command in (["--check"], ["--store", str(tmp_path / "new")]):
        assert main(["restore", str(tmp_path), *command]) == 1
        assert "names '../secrets.key', which is no file of a backup" in capsys.readouterr().err
    later = {**json.loads((made.folder / "backup" / "manifest.json").read_bytes()), "format": 2, "new": {}}
    (tmp_path / "manifest.json").write_text(json.dumps(later))
    with pytest.raises(StoreError, match="is a backup of format 2, made by runvitals"):
        read_manifest(str(tmp_path))


def test_a_backup_of_a_later_version_cannot_be_restored(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(made.folder / "backup", tmp_path / "later")
    manifest = tmp_path / "later" / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_bytes()), "revision": "r9999_later"}))
    for command in (["--check"], ["--store", str(tmp_path / "new")]):
        assert main(["restore", str(tmp_path / "later"), *command]) == 1
        written = capsys.readouterr()
        assert "has revision r9999_later of a later version of runvitals" in written.out + written.err


def test_batches_that_wait_on_a_server_keep_their_ids_after_an_older_backup_was_restored(
    options: list[str], stores: Stores, tmp_path: Path
) -> None:
    """They may be of runs that were assigned an id after the backup."""
    with start(options) as (_, client):
        assert post(client, 0)
        assert main(["backup", str(tmp_path / "backup"), *options]) == 0
        assert post(client, 0, run="after-the-backup")
        stores.clickhouse.kill()
        assert post(client, 1)
        assert post(client, 1, run="after-the-backup")  # both wait
    stores.clickhouse.start()
    new = ["--store", *stores.new(), "--dir", str(tmp_path / "data")]
    assert main(["restore", str(tmp_path / "backup"), *new]) == 0
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


def test_an_empty_database_is_not_backed_up(
    stores: Stores, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = stores.metadata
    with serving(tmp_path / "store", "--metadata", server.make("used")) as (_, client):
        assert post(client, 0)
    backup = ["backup", str(tmp_path / "backup"), "--store", str(tmp_path / "store")]
    assert main([*backup, "--metadata", server.make("unused")]) == 1
    assert "is not a metadata store: it is empty" in capsys.readouterr().err
    assert not (tmp_path / "backup").exists()
    database = Database(server.address("unused"))
    assert is_empty(database)
    database.close()


def test_lines_say_when_a_copy_ends() -> None:
    written: list[str] = []
    now_s = [0.0]
    progress = Progress(written.append, lambda: now_s[0])
    progress.stage("copying")
    for now_s[0], done in ((5.0, 1), (10.0, 25), (15.0, 30), (20.0, 40)):
        progress.far(f"{done} of 100 MB", done, 100)
    progress.far("done", 100, 100)
    assert written == ["copying", "25 of 100 MB, 0:30 left", "40 of 100 MB, 0:30 left"]
