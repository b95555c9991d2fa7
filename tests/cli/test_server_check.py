"""`runvitals server check`: what keeps a server from starting is named before it does."""

from __future__ import annotations

import os
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import text

from runvitals.cli import main
from runvitals.server.database.database import Database
from runvitals.server.database.migration import downgrade
from runvitals.server.metadata_store import open_metadata_store
from runvitals.server.pairing.pairing import pair
from runvitals.store.samples.sqlite import SqliteChunks
from tests.certificates import self_signed
from tests.server.database.conftest import postgresql
from tests.server.database.postgresql import Server
from tests.server.mail.receiver import Receiver

__all__ = ["postgresql"]
SECRET = "a-secret-word"


class Found:
    """Runs the check; returns the lines by what they are about."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *options: str, fails: bool = False) -> dict[str, str]:
        assert main(["server", "check", "--listen", "127.0.0.1:0", *options]) == int(fails)
        shown = self._capsys.readouterr()
        assert SECRET not in shown.out + shown.err
        lines = {line[8:].partition(": ")[0]: line for line in shown.out.splitlines()}
        assert any(line.startswith("failed") for line in lines.values()) == fails
        return lines


@pytest.fixture
def found(capsys: pytest.CaptureFixture[str]) -> Found:
    return Found(capsys)


def test_a_new_store_is_left_alone(found: Found, tmp_path: Path) -> None:
    lines = found("--store", str(tmp_path / "store"))
    assert lines["metadata"].endswith("is empty: the server makes its tables")
    assert lines["samples"].endswith("does not exist: the server makes it")
    assert list(tmp_path.iterdir()) == []


def test_providers_that_nobody_can_sign_in_by(found: Found, tmp_path: Path) -> None:
    settings = tmp_path / "settings.toml"
    provider = (
        '[[providers]]\nid = "lab"\nlabel = "Lab"\nkind = "{}"\nclient_id = "x"\nissuer = "https://{}"\n'
    )
    settings.write_text('[settings]\nurl = "https://[::1]:1"\n' + provider.format("oidc", "127.0.0.1:1"))
    options = ("--store", str(tmp_path / "store"), "--settings", str(settings))
    assert (
        "note    provider lab: nobody can sign in by it now: https://127.0" in found(*options)["provider lab"]
    )
    settings.write_text('[settings]\nurl = "https://[::1]:1"\n' + provider.format("github", "ghe.example"))
    assert "back to https://[::1]:1/api/v1/auth/lab/callback" in found(*options)["provider lab"]


@pytest.mark.parametrize(
    ("option", "value", "what", "text"),
    [
        (
            "--store",
            "{folder}/file",
            "samples",
            "{folder}/file cannot be made: {folder}/file is not a folder",
        ),
        ("--store", "{folder}/file/store", "samples", "{folder}/file is not a folder"),
        (
            "--metadata",
            "{folder}/none/c.db",
            "metadata",
            "the folder {folder}/none of the metadata store does not",
        ),
        ("--metadata", "postgresql://u@host:port/name", "metadata", "unsupported metadata store address"),
        ("--metadata", "postgresql://u@127.0.0.1:1/name", "metadata", "u@127.0.0.1:1/name cannot be reached"),
        ("RUNVITALS_URL", "nonsense", "certificate", "invalid url 'nonsense'; expected https://host"),
        ("RUNVITALS_URL", "https://é..org", "certificate", "invalid url 'https://é..org'; expected"),
        ("--files", "az://training", "bucket of --files", "AZURE_STORAGE_ACCOUNT_NAME with"),
    ],
)
def test_odd_values_are_named_with_what_is_allowed(
    option: str,
    value: str,
    what: str,
    text: str,
    found: Found,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "file").touch()
    value, text = value.format(folder=tmp_path), text.format(folder=tmp_path)
    given = [option, value]
    if option.isupper():
        monkeypatch.setenv(option, value)
        given = []
    lines = found("--store", str(tmp_path / "store"), *given, fails=True)
    assert lines[what].startswith("failed")
    assert text in lines[what]


def test_a_store_that_is_used_is_named_and_so_is_an_address(found: Found, tmp_path: Path) -> None:
    with SqliteChunks(str(tmp_path)) as store, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        lines = found("--store", str(tmp_path), "--listen", where, fails=True)
        assert f"the store in {store.name} is in use by process {os.getpid()}" in lines["samples"]
        assert lines["address"].startswith(f"failed  address: cannot listen on {where}: ")


def test_files_of_the_server_are_read(found: Found, tmp_path: Path) -> None:
    settings, keys = tmp_path / "settings.toml", tmp_path / "keys"
    settings.write_text(f'[settings]\nsmtp_url = "smtp://a:{SECRET}@mail.example"\ncolour = 1\n')
    keys.write_text("not a key")
    keys.chmod(0o600)
    options = ["--store", str(tmp_path / "store"), "--settings", str(settings), "--secret-keys", str(keys)]
    lines = found(*options, fails=True)
    assert f"the key file {keys} has an invalid line" in lines["key file"]
    assert f"{settings}: " in lines["settings"]
    assert "colour" in lines["settings"]


def test_the_state_of_postgresql_is_told(found: Found, tmp_path: Path, postgresql: Server) -> None:
    address = postgresql.make(f"check_{os.getpid()}")
    options = ["--store", str(tmp_path / "store"), "--metadata", address]
    assert "is empty" in found(*options)["metadata"]
    open_metadata_store(address).close()
    assert "within 5 s of postgresql" in found(*options)["clock"]
    with closing(Database(address)) as database:
        downgrade(database, "0047")
        assert "has tables of revision 0047, which the server upgrades" in found(*options)["metadata"]
        later = "UPDATE alembic_version SET version_num = '9999'"
        database.write(lambda connection: connection.execute(text(later)))
    assert "has revision 9999 of a later version" in found(*options, fails=True)["metadata"]
    away = f"postgresql://ada:{SECRET}@127.0.0.1:1/runs"
    assert "refused" in found(*options[:3], away, fails=True)["metadata"]


def test_samples_and_metadata_of_different_servers_are_told_apart(found: Found, tmp_path: Path) -> None:
    for name in "ab":
        folder = str(tmp_path / name)
        with SqliteChunks(folder) as store, open_metadata_store(f"{folder}/catalogue.db") as metadata_store:
            pair(store, metadata_store)
    options = ["--store", str(tmp_path / "a")]
    assert found(*options)["pairing"].startswith("ok ")
    other = str(tmp_path / "b" / "catalogue.db")
    assert "belongs to a different store" in found(*options, "--metadata", other, fails=True)["pairing"]


def test_the_sign_in_to_the_mail_server_is_tried(
    found: Found, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNVITALS_MAIL_FROM", "runs@lab.example")
    monkeypatch.setenv("RUNVITALS_URL", "http://127.0.0.1:1")
    context, trusted = self_signed(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    with Receiver(starttls=context, login=True) as receiver:
        where = f"127.0.0.1:{receiver.port}"
        monkeypatch.setenv("RUNVITALS_SMTP_URL", f"smtp://runs:correct%20horse@{where}")
        assert "accepts the sign-in" in found("--store", str(tmp_path / "store"))["mail"]
        monkeypatch.setenv("RUNVITALS_SMTP_URL", f"smtp://runs:{SECRET}@{where}")
        line = found("--store", str(tmp_path / "store"), fails=True)["mail"]
        assert f"127.0.0.1:{receiver.port} cannot be used: the sign-in as runs failed" in line
        assert receiver.received == []


@contextmanager
def answering(context: ssl.SSLContext) -> Iterator[str]:
    """A server with a certificate; yields its URL."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                try:
                    context.wrap_socket(connection, server_side=True).close()
                except ssl.SSLError:
                    return  # the other side does not trust it

        thread = threading.Thread(target=answer)
        thread.start()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


def test_a_certificate_that_ends_soon_or_is_not_trusted_is_named(
    found: Found, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, trusted = self_signed(tmp_path)
    for expected, state in (("self-signed certificate", "failed"), ("ends in 1 days", "note")):
        with answering(context) as url:
            monkeypatch.setenv("RUNVITALS_URL", url)
            line = found("--store", str(tmp_path / "store"), fails=state == "failed")["certificate"]
        assert line.startswith(state)
        assert expected in line
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))


def test_a_clock_that_is_behind_is_named(
    found: Found, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SqliteChunks(str(tmp_path)):
        pass
    now_s = os.stat(tmp_path / "log.db").st_mtime
    monkeypatch.setattr(time, "time", lambda: now_s - 3600.0)
    line = found("--store", str(tmp_path), fails=True)["clock"]
    assert f"is 3,600 s behind what was written last to {tmp_path}: set it" in line
