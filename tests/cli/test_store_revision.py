"""`runvitals store upgrade` and `downgrade`, with one server and with several."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
from sqlalchemy import text

from runvitals.cli import main
from runvitals.server.database.database import Database
from runvitals.server.database.migration import newest, present
from runvitals.server.metadata_store import open_metadata_store
from tests.cli.test_server import envelope, serving, values
from tests.cli.test_several_servers import Stores, stores
from tests.forked_command import ForkedCommand
from tests.patience import PATIENCE_S

__all__ = ["stores"]
EARLIER = "0036"


@contextmanager
def opened(address: str) -> Iterator[Database]:
    database = Database(address)
    yield database
    database.close()


def revision(address: str) -> str | None:
    with opened(address) as database:
        return present(database)


def test_one_server_goes_back_and_forth(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, path = str(tmp_path / "store"), str(tmp_path / "store" / "catalogue.db")
    at = ["--store", folder]
    with serving(folder) as (_, client):
        assert client.post("/api/v1/ingest", json=envelope(0)).status_code == 200
        assert main(["store", "downgrade", EARLIER, *at]) == 1
        assert "is in use by process" in capsys.readouterr().err
    assert main(["store", "upgrade", *at]) == 0
    assert capsys.readouterr().out == f"sqlite:///{path} has revision {newest()}\n"
    assert main(["store", "downgrade", EARLIER, *at]) == 0
    assert f"was downgraded from revision {newest()} to {EARLIER}: " in capsys.readouterr().out
    assert revision(path) == EARLIER
    assert main(["store", "upgrade", *at]) == 0
    assert f"was upgraded from revision {EARLIER} to revision {newest()}" in capsys.readouterr().out
    assert main(["store", "downgrade", EARLIER, *at]) == 0
    with serving(folder) as (_, client):  # upgrades it as well
        assert values(client) == [0.0, 1.0, 2.0]
    assert revision(path) == newest()


@pytest.mark.parametrize("wanted", ["9999", "0005", "newest", ""])
def test_a_revision_that_there_is_no_way_back_to_is_refused(
    tmp_path: Path, wanted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "catalogue.db"
    open_metadata_store(str(path)).close()
    at = ["--store", str(tmp_path / "store"), "--metadata", str(path)]
    assert main(["store", "downgrade", wanted or newest(), *at]) == 1
    said = capsys.readouterr().err
    assert f"has revision {newest()}, and can return to 0006, 0007, " in said
    assert f"not to {wanted or newest()!r}" in said or f"not to '{wanted}'" in said
    assert revision(str(path)) == newest()


def test_what_would_be_lost_prevents_a_downgrade(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "catalogue.db")
    open_metadata_store(path).close()
    with opened(path) as database:
        plan = "INSERT INTO plan (name, description) VALUES ('large', '')"
        database.write(lambda connection: connection.execute(text(plan)))
    assert main(["store", "downgrade", "0034", "--store", str(tmp_path / "s"), "--metadata", path]) == 1
    assert "cannot return to the revision before 0036: 1 plans exist" in capsys.readouterr().err
    assert revision(path) == newest()


def test_there_is_nothing_to_upgrade(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["upgrade"], ["downgrade", EARLIER]):
        assert main(["store", *command, "--store", str(tmp_path / "typo")]) == 1
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
    said = capsys.readouterr().err
    assert "has revision 9999 of a later version" in said
    assert f"run `runvitals store downgrade {newest()}` with it" in said


def test_several_servers_go_back_and_forth(
    stores: Stores, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    samples, *metadata = stores.new()
    address, at = metadata[-1], ["--store", samples, *metadata, "--dir", str(tmp_path / "cli")]

    def servers(stack: ExitStack) -> list[tuple[ForkedCommand, httpx.Client]]:
        """Two servers, each in a folder of its own."""
        folders = (str(tmp_path / name) for name in "ab")
        return [stack.enter_context(serving(samples, *metadata, "--dir", folder)) for folder in folders]

    with ExitStack() as stack:
        ((_, first), (_, second)) = servers(stack)
        assert first.post("/api/v1/ingest", json=envelope(0)).status_code == 200
        assert main(["store", "downgrade", EARLIER, *at]) == 1
        assert "2 servers use the metadata store" in capsys.readouterr().err
        assert values(second) == [0.0, 1.0, 2.0]
    assert main(["store", "downgrade", EARLIER, *at]) == 0
    assert revision(address) == EARLIER
    assert main(["store", "upgrade", *at]) == 0
    assert revision(address) == newest()
    assert main(["store", "downgrade", EARLIER, *at]) == 0
    with ExitStack() as stack:  # the first upgrades it
        ((_, first), (_, second)) = servers(stack)
        assert second.post("/api/v1/ingest", json=envelope(1)).json()["stored"] is True
        assert len(values(first)) == len(values(second)) == 6
    assert revision(address) == newest()


def test_tables_are_not_upgraded_while_a_server_of_an_earlier_version_uses_them(
    stores: Stores, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    samples, *metadata = stores.new()
    at = ["--store", samples, *metadata, "--dir", str(tmp_path)]
    with open_metadata_store(metadata[-1]) as earlier:
        assert main(["store", "downgrade", EARLIER, *at]) == 0
        link = earlier.join_servers(lambda message: None, lambda: None)
        link.thread.start()
        assert main(["store", "upgrade", *at]) == 1
        assert "a server uses the metadata store" in capsys.readouterr().err
        later = threading.Thread(target=lambda: open_metadata_store(metadata[-1]).close())
        later.start()  # waits
        assert revision(metadata[-1]) == EARLIER
        link.close()
        later.join(timeout=PATIENCE_S)
        assert not later.is_alive()
    assert revision(metadata[-1]) == newest()
