"""`runvitals upgrade` and `downgrade`, with one server and with several.

The commands here become those of a later version; servers, which are other processes, stay of this one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
from sqlalchemy import text

from runvitals.cli import main
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.database import migration
from runvitals.server.database.database import Database
from runvitals.server.database.migration import downgrade, newest, present
from runvitals.server.database.server_link import count_servers
from runvitals.server.metadata_store import open_metadata_store
from runvitals.server.pairing.pairing import pair
from runvitals.store.samples.sqlite import SqliteChunks
from runvitals.version import __version__
from tests.cli.test_server import envelope, serving, values
from tests.cli.test_several_servers import Stores, stores
from tests.forked_command import ForkedCommand
from tests.patience import PATIENCE_S, eventually
from tests.server.database.next_revision import NEXT, later_version

__all__ = ["stores"]
EARLIER = newest()


@pytest.fixture
def install_later_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Install a later version of the commands."""
    return lambda: monkeypatch.setattr(migration, "FOLDER", later_version(tmp_path / "later"))


@contextmanager
def opened(address: str) -> Iterator[Database]:
    database = Database(address)
    yield database
    database.close()


def revision(address: str) -> str | None:
    with opened(address) as database:
        return present(database)


def servers_of(address: str) -> int:
    with opened(address) as database, database.read() as connection:
        return count_servers(connection)


def test_one_server_goes_back_and_forth(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], install_later_version: Callable[[], None]
) -> None:
    folder, path = str(tmp_path / "store"), str(tmp_path / "store" / "catalogue.db")
    at = ["--store", folder]
    with serving(folder) as (_, client):
        assert client.post("/api/v1/ingest", json=envelope(0)).status_code == 200
        install_later_version()
        assert main(["upgrade", *at]) == 1
        assert "is in use by process" in capsys.readouterr().err
    assert main(["upgrade", *at]) == 0
    assert f"was upgraded from revision {EARLIER} to revision {NEXT}" in capsys.readouterr().out
    assert revision(path) == NEXT
    assert main(["upgrade", *at]) == 0
    assert capsys.readouterr().out == f"sqlite:///{path} has revision {NEXT}\n"
    assert main(["downgrade", EARLIER, *at]) == 0
    assert f"was downgraded from revision {NEXT} to {EARLIER}: " in capsys.readouterr().out
    assert revision(path) == EARLIER
    with serving(folder) as (_, client):
        assert values(client) == [0.0, 1.0, 2.0]
        assert main(["downgrade", EARLIER, *at]) == 1
        assert "is in use by process" in capsys.readouterr().err
    open_metadata_store(path).close()  # upgrades it as well
    assert revision(path) == NEXT


@pytest.mark.parametrize("expected", ["9999", "0005", "newest", NEXT])
def test_a_revision_that_there_is_no_way_back_to_is_refused(
    tmp_path: Path,
    expected: str,
    capsys: pytest.CaptureFixture[str],
    install_later_version: Callable[[], None],
) -> None:
    path = tmp_path / "catalogue.db"
    open_metadata_store(str(path)).close()
    install_later_version()
    at = ["--store", str(tmp_path / "store"), "--metadata", str(path)]
    assert main(["upgrade", *at]) == 0
    assert main(["downgrade", expected, *at]) == 1
    stderr = capsys.readouterr().err
    assert f"has revision {NEXT}, and can return to " in stderr
    assert f"{EARLIER}: not to '{expected}'" in stderr
    assert revision(str(path)) == NEXT


def test_there_is_no_way_back_from_the_oldest_revision(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "catalogue.db")
    open_metadata_store(path).close()
    with opened(path) as database:
        oldest = "UPDATE alembic_version SET version_num = '0041'"
        database.write(lambda connection: connection.execute(text(oldest)))
    assert main(["downgrade", "0040", "--store", str(tmp_path / "s"), "--metadata", path]) == 1
    assert "has revision 0041, and can return to no earlier one: not to '0040'" in capsys.readouterr().err


def test_what_would_be_lost_prevents_a_downgrade(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], install_later_version: Callable[[], None]
) -> None:
    path = str(tmp_path / "catalogue.db")
    with open_metadata_store(path) as store:
        ada = store.accounts.users.create("ada", CLI, now_ms=1)
    install_later_version()
    at = ["--store", str(tmp_path / "s"), "--metadata", path]
    assert main(["upgrade", *at]) == 0
    with opened(path) as database:
        badge = f"INSERT INTO badge (user_id) VALUES ({ada.id})"
        database.write(lambda connection: connection.execute(text(badge)))
    assert main(["downgrade", EARLIER, *at]) == 1
    assert f"cannot return to the revision before {NEXT}: 1 badges" in capsys.readouterr().err
    assert revision(path) == NEXT


def test_an_upgrade_and_the_way_back_are_checked_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], install_later_version: Callable[[], None]
) -> None:
    folder, copy = str(tmp_path / "store"), str(tmp_path / "backup.tar")
    at, path = ["--store", folder], f"{folder}/catalogue.db"
    with SqliteChunks(folder) as samples, open_metadata_store(path) as store:
        pair(samples, store)
        ada = store.accounts.users.create("ada", CLI, now_ms=1)
    assert main(["upgrade", "--check", *at]) == 0
    assert "no revisions to apply\nservers may be replaced one after the other" in capsys.readouterr().out
    with opened(path) as database:
        downgrade(database, "0048")
    assert main(["backup", copy, *at]) == 0
    capsys.readouterr()
    assert main(["upgrade", "--check", *at]) == 1
    shown = capsys.readouterr().out
    assert f"has revision 0048; runvitals {__version__} has {EARLIER}" in shown
    assert "  0049: Buckets that keep the files of teams" in shown
    assert "no backup was named" in shown
    assert main(["upgrade", "--check", "--backup", copy, *at]) == 0
    assert f"{copy} is 0.0 hours old" in capsys.readouterr().out
    assert main(["upgrade", *at]) == 0
    assert main(["downgrade", "--check", "0048", *at]) == 0
    assert f"can return from revision {EARLIER} to 0048, and nothing is lost" in capsys.readouterr().out
    install_later_version()
    assert main(["upgrade", "--check", "--backup", copy, *at]) == 1
    assert f"has tables of revision 0048, not {EARLIER}: make a new backup" in capsys.readouterr().out
    assert main(["upgrade", *at]) == 0
    with opened(path) as database:
        badge = f"INSERT INTO badge (user_id) VALUES ({ada.id})"
        database.write(lambda connection: connection.execute(text(badge)))
    capsys.readouterr()
    assert main(["downgrade", "--check", EARLIER, *at]) == 1
    assert "1 badges: delete them\ndelete that, or restore the backup" in capsys.readouterr().out
    assert revision(path) == NEXT


def test_there_is_nothing_to_upgrade(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["upgrade"], ["downgrade", EARLIER]):
        assert main([*command, "--store", str(tmp_path / "typo")]) == 1
        assert f"there is no metadata store in {tmp_path / 'typo'}" in capsys.readouterr().err
    assert not (tmp_path / "typo").exists()


def test_an_earlier_version_says_how_to_return_to_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "catalogue.db")
    open_metadata_store(path).close()
    with opened(path) as database:
        later = "UPDATE alembic_version SET version_num = '9999'"
        database.write(lambda connection: connection.execute(text(later)))
    assert main(["user", "list", "--store", str(tmp_path), "--metadata", path]) == 1
    stderr = capsys.readouterr().err
    assert "has revision 9999 of a later version" in stderr
    assert f"run `runvitals downgrade {newest()}` with it" in stderr


def test_several_servers_go_back_and_forth(
    stores: Stores,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    install_later_version: Callable[[], None],
) -> None:
    versions = migration.FOLDER
    samples, *metadata = stores.new()
    address, at = metadata[-1], ["--store", samples, *metadata, "--dir", str(tmp_path / "cli")]

    def servers(stack: ExitStack) -> list[tuple[ForkedCommand, httpx.Client]]:
        """Two servers, each in a folder of its own."""
        folders = (str(tmp_path / name) for name in "ab")
        return [stack.enter_context(serving(samples, *metadata, "--dir", folder)) for folder in folders]

    with ExitStack() as stack:
        ((_, first), (_, second)) = servers(stack)
        assert first.post("/api/v1/ingest", json=envelope(0)).status_code == 200
        install_later_version()
        for command in (["upgrade"], ["downgrade", EARLIER]):
            assert main([*command, *at]) == 1
            assert "2 servers use the metadata store" in capsys.readouterr().err
        assert values(second) == [0.0, 1.0, 2.0]
    eventually(lambda: servers_of(address) == 0)  # PostgreSQL notices later that they were killed
    assert main(["upgrade", *at]) == 0
    assert revision(address) == NEXT
    assert main(["downgrade", EARLIER, *at]) == 0
    assert revision(address) == EARLIER
    with ExitStack() as stack:
        ((_, first), (_, second)) = servers(stack)
        assert second.post("/api/v1/ingest", json=envelope(1)).json()["stored"] is True
        assert len(values(second)) == 6
        eventually(lambda: len(values(first)) == 6)  # the other server is notified
        # Tables with which they can go on change beside them, as when servers are replaced one by one.
        monkeypatch.setattr(migration, "FOLDER", versions)
        later = later_version(tmp_path / "compatible", servers_go_on=True)
        monkeypatch.setattr(migration, "FOLDER", later)
        assert main(["upgrade", "--check", *at]) == 1  # without a backup
        assert "servers may be replaced one after the other" in capsys.readouterr().out
        open_metadata_store(address).close()
        assert revision(address) == NEXT
        assert first.post("/api/v1/ingest", json=envelope(0, run="another")).json()["stored"] is True
        eventually(lambda: len(values(second, "another")) == 3)


@pytest.mark.parametrize("state", ["new", "earlier"])
def test_servers_that_start_together_take_turns(
    stores: Stores, state: str, install_later_version: Callable[[], None]
) -> None:
    address = stores.new()[-1]
    if state == "earlier":
        open_metadata_store(address).close()
        install_later_version()
    with ThreadPoolExecutor() as threads:
        for store in threads.map(open_metadata_store, [address] * 4):
            store.close()
    assert revision(address) == newest()


def test_tables_are_not_upgraded_while_a_server_of_an_earlier_version_uses_them(
    stores: Stores,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    install_later_version: Callable[[], None],
) -> None:
    samples, *metadata = stores.new()
    at = ["--store", samples, *metadata, "--dir", str(tmp_path)]
    with open_metadata_store(metadata[-1]) as earlier:
        install_later_version()
        link = earlier.join_servers(lambda message: None, lambda: None)
        link.thread.start()
        assert main(["upgrade", *at]) == 1
        assert "a server uses the metadata store" in capsys.readouterr().err
        later = threading.Thread(target=lambda: open_metadata_store(metadata[-1]).close())
        later.start()  # waits
        assert revision(metadata[-1]) == EARLIER
        link.close()
        later.join(timeout=PATIENCE_S)
        assert not later.is_alive()
    assert revision(metadata[-1]) == newest()
