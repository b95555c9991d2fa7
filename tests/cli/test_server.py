"""`runvitals server` and `runvitals token`, as processes and over real sockets."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import pytest

from runvitals.cli import main
from runvitals.server.files.received_files import ReceivedFiles
from runvitals.server.metadata_store import open_metadata_store
from runvitals.server.pairing import pairing
from runvitals.server.runs.storage.writer_registration import WriterRegistration
from runvitals.store.samples.sqlite import SqliteChunks
from tests.forked_command import ForkedCommand
from tests.patience import PATIENCE_S, eventually
from tests.server.database import postgresql as postgres
from tests.server.stored_runs import StoredServer

SOURCE = str(Path(__file__).parents[2] / "src")


@contextmanager
def serving(
    folder: Path | str, *arguments: str, environ: Mapping[str, str] | None = None
) -> Iterator[tuple[ForkedCommand, httpx.Client]]:
    """A server on a free port of loopback, and a client of it."""
    command = ["server", "--listen", "127.0.0.1:0", "--store", str(folder), *arguments]
    process = ForkedCommand(*command, env={**os.environ, **(environ or {})})
    try:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        with httpx.Client(base_url=line.split()[1], timeout=PATIENCE_S) as client:
            yield process, client
    finally:
        process.kill()
        process.communicate()


def envelope(seq: int, run: str = "curl-1", values: int = 3) -> dict[str, object]:
    start_ms = time.time_ns() // 1_000_000 - 60_000
    t = [start_ms + seq * 1000 + tick for tick in range(values)]
    return {
        "project": "digits",
        "run": run,
        "writer": "curl",
        "seq": seq,
        "keys": ["cpu"],
        "t": t,
        "v": [[float(seq * values + tick) for tick in range(values)]],
    }


def values(client: httpx.Client, run: str = "curl-1") -> list[float]:
    response = client.get(f"/api/v1/runs/{run}/metrics", params={"keys": "cpu", "resolution": "raw"})
    assert response.status_code == 200, response.text
    return [value for group in response.json()["groups"] for value in group["series"]["cpu"]]


def test_connections_are_refused_until_the_server_can_answer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "settings.toml")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = free.getsockname()
    command = ["server", "--listen", f"127.0.0.1:{address[1]}", "--store", str(tmp_path / "store")]
    process = ForkedCommand(*command, "--settings", str(tmp_path / "settings.toml"))
    try:
        with open(tmp_path / "settings.toml", "w"):  # it has its port and its stores, and waits for settings
            with pytest.raises(OSError, match="in use"), socket.socket() as other:
                other.bind(address)
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(address)
        assert "stores runs in" in process.stdout.readline()
        socket.create_connection(address).close()
    finally:
        process.kill()
        process.communicate()


def test_what_is_posted_is_there_and_survives_an_orderly_end(tmp_path: Path) -> None:
    with serving(tmp_path / "store") as (process, client):
        ack = client.post("/api/v1/ingest", json=envelope(0))
        assert (ack.status_code, ack.json()["stored"]) == (200, True)
        assert client.post("/api/v1/ingest", json=envelope(0)).json()["stored"] is False
        assert values(client) == [0.0, 1.0, 2.0]
        assert client.get("/api/v1/runs").json()["runs"][0]["project"] == "digits"
        assert client.get("/healthz").text == "ok\n"
        assert client.get("/readyz").json() == {"ready": True, "problem": None, "warnings": []}
        assert "runvitals_ingest_points_total 6\n" in client.get("/metrics").text
        assert "<title>" in client.get("/").text
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=PATIENCE_S)
        unexpected = [line for line in err.splitlines() if " slow request " not in line]  # on a busy machine
        assert (process.returncode, unexpected) == (0, [])
    with serving(tmp_path / "store") as (_, client):
        assert values(client) == [0.0, 1.0, 2.0]


def test_the_audit_log_is_appended_to_a_file(tmp_path: Path) -> None:
    path, store = tmp_path / "audit.jsonl", tmp_path / "store"
    with serving(store, "--audit-file", str(path)) as (process, _):
        assert main(["user", "create", "ada", "--store", str(store)]) == 0
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0
    assert [json.loads(line)["action"] for line in path.read_text().splitlines()] == ["user.create"]


def test_settings_are_read_from_a_file(tmp_path: Path) -> None:
    path, store = tmp_path / "settings.toml", tmp_path / "store"
    path.write_text("[settings]\nsignup = 'open'\nsupport_contact = 'help@lab.example'\n")
    assert main(["user", "create", "ada", "--admin", "--store", str(store)]) == 0
    with serving(store, "--settings", str(path)) as (_, client):
        methods = client.get("/api/v1/auth/methods").json()
        assert (methods["signup"], methods["support_contact"]) == ("open", "help@lab.example")
    path.write_text("[settings]\nsignup = 'all'\n")
    refused = ForkedCommand(
        "server", "--listen", "127.0.0.1:0", "--store", str(store), "--settings", str(path)
    )
    _, err = refused.communicate(timeout=PATIENCE_S)
    assert refused.returncode == 1
    assert f"{path}: invalid signup 'all'" in err


def test_a_server_that_has_just_started_ends_in_good_order(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "runvitals", "server", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(
        [*command, "--store", str(tmp_path / "store")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert "stores runs in" in process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert "Traceback" not in err


def test_bodies_reach_routes_that_are_imported_later_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "runvitals", "server", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(
        [*command, "--store", str(tmp_path / "store")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        with httpx.Client(base_url=process.stdout.readline().split()[1], timeout=PATIENCE_S) as client:
            assert client.post("/api/v1/ingest", json=envelope(0)).status_code == 200
            rules = {"rules": {"run": ["{trial}"]}}
            changed = client.put("/api/v1/projects/digits/routing-rules", json=rules)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=PATIENCE_S)
    assert (changed.status_code, changed.json().get("rules")) == (200, rules["rules"])
    assert "Warning" not in err


def test_a_killed_server_has_all_that_it_acknowledged(tmp_path: Path) -> None:
    acknowledged: list[int] = []
    seq = 0
    for life in range(3):
        with serving(tmp_path / "store") as (process, client):
            for _ in range(10 + 5 * life):
                if client.post("/api/v1/ingest", json=envelope(seq)).status_code == 200:
                    acknowledged.append(seq)
                seq += 1
            process.kill()
    with serving(tmp_path / "store") as (_, client):
        stored = sorted(values(client))
    assert len(acknowledged) > 40
    assert stored == [float(seq * 3 + tick) for seq in acknowledged for tick in range(3)]


UNTIL_INTERRUPTED = """
import time, runvitals
run = runvitals.init(project="digits", id="abc", settings={"sampling_interval": 0.2})
try:
    for step in range(600):
        run.log({"loss": 1 / (step + 1)})
        time.sleep(0.1)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_a_person_at_the_server_stops_a_training(tmp_path: Path) -> None:
    kept = {name: text for name, text in os.environ.items() if not name.startswith("RUNVITALS_")}
    environ = {**kept, "RUNVITALS_DIR": str(tmp_path / "data"), "XDG_CONFIG_HOME": str(tmp_path)}
    environ |= {"PYTHONPATH": SOURCE, "RUNVITALS_COLLECTORS": "cpu,memory"}
    with serving(tmp_path / "store") as (_, client):
        environ["RUNVITALS_SERVER"] = str(client.base_url)
        command = [sys.executable, "-c", UNTIL_INTERRUPTED]
        with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as training:
            eventually(lambda: client.get("/api/v1/runs/abc").status_code == 200)
            assert client.get("/api/v1/runs/abc").json()["state"] == "running"
            assert client.post("/api/v1/runs/abc/stop", json={}).status_code == 200
            out, _ = training.communicate(timeout=PATIENCE_S)
        assert (out, training.returncode) == ("interrupted\n", 0)
        eventually(lambda: client.get("/api/v1/runs/abc").json()["state"] != "running")
        run = client.get("/api/v1/runs/abc").json()
        assert run["state"] == "stopped"
        assert "stop_requested" in [event["name"] for event in run["events"]]
        refused = client.post("/api/v1/runs/abc/stop", json={})
        assert (refused.status_code, refused.json()["error"]) == (
            409,
            "run 'abc' is stopped; only a running run can be stopped",
        )


@pytest.fixture
def postgresql(testrun_uid: str) -> postgres.Server:
    """The server that the metadata store's tests of this session have, too."""
    if postgres.programs() is None:
        pytest.skip("PostgreSQL is not installed")
    return postgres.shared_server(testrun_uid)


def test_what_is_known_of_runs_can_be_in_postgresql(
    tmp_path: Path, postgresql: postgres.Server, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--catalogue", postgresql.make(f"server_{os.getpid()}")]
    assert main(["token", "create", "cluster A", "--store", str(tmp_path / "store"), *where]) == 0
    bearer = {"authorization": f"Bearer {capsys.readouterr().out.strip()}"}
    for seq in range(2):  # the second time with what is there already
        with serving(tmp_path / "store", "--require-token", *where) as (process, client):
            client.headers.update(bearer)
            note = [1, "info", {"t": time.time_ns() // 1_000_000, "summary": {"loss": 0.5 - seq / 10}}]
            ack = client.post("/api/v1/ingest", json={**envelope(seq), "records": [note]})
            assert (ack.status_code, ack.json()["stored"]) == (200, True)
            assert client.post("/api/v1/ingest", json=envelope(seq)).json()["stored"] is False
            (run,) = client.get("/api/v1/runs", params={"where": "summary.loss < 1"}).json()["runs"]
            assert (run["project"], run["summary"]) == ("digits", {"loss": 0.5 - seq / 10})
            assert len(values(client)) == 3 * (seq + 1)
            if seq == 1:
                eventually(lambda: stopped(client))  # it is lost when nothing was heard for 10 s
                eventually(lambda: client.post("/api/v1/ingest", json=envelope(9)).json()["stop"])
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=PATIENCE_S)
    assert not (tmp_path / "store" / "catalogue.db").exists()


def stopped(client: httpx.Client) -> bool:
    client.post("/api/v1/ingest", json=envelope(1))
    return client.post("/api/v1/runs/curl-1/stop").status_code == 200


def test_a_metadata_store_that_cannot_be_reached_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["server", "--listen", "127.0.0.1:0", "--store", str(tmp_path / "store")]
    assert main([*command, "--catalogue", f"postgresql://x:secret@/y?host={tmp_path}"]) == 1
    stderr = capsys.readouterr().err
    assert stderr.startswith("runvitals: could not open the metadata store ")
    assert "secret" not in stderr
    assert main([*command, "--catalogue", "mysql://x/y"]) == 1
    assert "postgresql://" in capsys.readouterr().err


@pytest.fixture
def years(tmp_path: Path) -> list[str]:
    """Where a store has three samples of the year 2020 and three of now, as options; nobody uses it."""
    shared = StoredServer(tmp_path)
    (who,) = shared.metadata_store.writers.join(
        [WriterRegistration("curl-1", "curl", "digits")], time.time_ns() // 1_000_000
    )
    for seq, start_ms in enumerate((1_600_000_000_000, time.time_ns() // 1_000_000 - 60_000)):
        shared.append(who, ("cpu",), start_ms + 1000 * np.arange(3), 3.0 * seq + np.arange(3.0).reshape(3, 1))
    shared.store.compact()
    shared.close()
    return ["--store", str(tmp_path / "store"), "--catalogue", str(tmp_path / "catalogue.db")]


def test_it_drops_old_samples_and_says_so_in_json(tmp_path: Path, years: list[str]) -> None:
    options = ["--keep", "90d", "--max-size", "1TB", "--log-format", "json"]
    with serving(tmp_path / "store", *years, *options) as (process, client):
        eventually(lambda: values(client) == [3.0, 4.0, 5.0])
        eventually(lambda: "runvitals_housekeeping_dropped_samples_total 3" in client.get("/metrics").text)
        assert client.get("/api/v1/runs/no%0A").status_code == 404
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=PATIENCE_S)
    lines = {line["message"]: line for line in map(json.loads, err.splitlines())}
    lines.pop("slow request", None)  # on a busy machine
    assert list(lines) == ["dropped samples beyond the maximum age", "request rejected"]
    assert lines["dropped samples beyond the maximum age"]["samples"] == 3


def test_samples_are_dropped_by_hand(
    tmp_path: Path, years: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    store = years[:2]
    assert main(["store", "drop", *store]) == 2
    assert "specify what to keep: --keep 90d, --max-size 200GB, or both" in capsys.readouterr().err
    for dropped in (3, 0):
        assert main(["store", "drop", "--keep", "90d", "--max-size", "1GB", *store]) == 0
        assert f"{tmp_path / 'store'}: {dropped} samples dropped; " in capsys.readouterr().out


def test_a_backup_of_a_server_that_runs_is_a_server_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, copy = str(tmp_path / "store"), str(tmp_path / "copy")
    content = b"a file"
    sha256 = hashlib.sha256(content).hexdigest()
    with serving(tmp_path / "store") as (_, client):
        assert client.post("/api/v1/ingest", json=envelope(0)).status_code == 200
        sent = client.put(
            f"/api/v1/runs/curl-1/files/{sha256}?offset=0&size=6",
            content=content,
            headers={"content-type": "application/octet-stream"},
        )
        assert sent.json()["complete"], sent.text
        assert main(["backup", copy, "--store", folder]) == 0
        assert capsys.readouterr().out.startswith(f"{copy}: a backup of ")
        assert client.post("/api/v1/ingest", json=envelope(1)).status_code == 200
        assert main(["backup", copy, "--store", folder]) == 1
        assert "is not empty" in capsys.readouterr().err
    assert os.stat(copy).st_mode & 0o077 == 0
    assert main(["store", "check", "--store", copy]) == 0
    with SqliteChunks(copy) as store, open_metadata_store(f"{copy}/catalogue.db") as metadata_store:
        run = metadata_store.runs.find("curl-1", 0)
        assert run is not None
        (writer,) = metadata_store.writers.of_runs([run.id])[run.id]
        (series,) = store.read([writer.lane_id], None, 0, 2**42).series
        assert (run.project, metadata_store.metrics.keys([series.metric])) == (
            "digits",
            {series.metric: "cpu"},
        )
        assert series.values.tolist() == [0.0, 1.0, 2.0]
        restored = ReceivedFiles(f"{copy}/files", metadata_store, lambda: 0).open(run.id, sha256)
        assert restored is not None
        with restored.file as file:
            assert file.read() == content
    assert all(not path.stat().st_mode & 0o077 for path in Path(copy, "files").rglob("*"))


def test_a_store_is_not_backed_up_with_the_metadata_of_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("ours", "theirs"):
        with (
            SqliteChunks(str(tmp_path / name)) as store,
            open_metadata_store(str(tmp_path / name / "catalogue.db")) as metadata_store,
        ):
            pairing.pair(store, metadata_store)
    ours, copy = tmp_path / "ours", tmp_path / "copy"
    os.replace(tmp_path / "theirs" / "catalogue.db", ours / "catalogue.db")
    assert main(["backup", str(copy), "--store", str(ours)]) == 1
    output = capsys.readouterr()
    assert f"belongs to a different store than {ours}: " in output.err
    assert "a backup of" not in output.out
    assert not copy.exists()


def test_the_keys_of_secrets_stay_the_same_and_private(tmp_path: Path) -> None:
    keys = tmp_path / "store" / "secrets.key"
    with serving(tmp_path / "store"):
        first = keys.read_text()
        assert keys.stat().st_mode & 0o077 == 0
    with serving(tmp_path / "store"):
        assert keys.read_text() == first


def test_a_second_server_on_the_folder_is_refused(tmp_path: Path) -> None:
    with serving(tmp_path / "store"):
        second = ForkedCommand("server", "--listen", "127.0.0.1:0", "--store", str(tmp_path / "store"))
        _, err = second.communicate(timeout=PATIENCE_S)
    assert second.returncode == 1
    assert err.startswith("runvitals: ")
    assert str(tmp_path / "store") in err


def test_without_a_token_a_link_makes_the_first_administrator(tmp_path: Path) -> None:
    with serving(tmp_path / "store", "--require-token") as (process, client):
        line = process.stdout.readline()
        assert line.startswith("runvitals: create the first administrator within 24 hours: http://127.0.0.1:")
        secret = line.strip().partition("/-/setup#")[2]
        assert client.get("/api/v1/runs").status_code == 401
        page = client.get("/-/setup", headers={"accept": "text/html"})
        assert page.status_code in (200, 503)  # 503: the page was not built
        assert client.get("/api/v1/about").json()["auth"] == "tokens"
    with open_metadata_store(str(tmp_path / "store" / "catalogue.db")) as metadata_store:
        tokens = metadata_store.accounts.one_time_tokens
        assert tokens.use(secret, "setup", time.time_ns() // 1_000_000).purpose == "setup"


def test_on_loopback_the_link_is_offered_and_nothing_needs_it(tmp_path: Path) -> None:
    with serving(tmp_path / "store") as (process, client):
        line = process.stdout.readline()
        assert line.startswith(
            "runvitals: for accounts, create the first administrator within 24 hours: http:"
        )
        assert client.get("/api/v1/runs").status_code == 200
        assert client.get("/api/v1/about").json()["auth"] == "open"


def test_an_unattended_server_with_runs_and_tokens_gets_accounts(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    token = in_process("token", "create", "cluster A", "--store", str(folder)).strip()
    bearer = {"authorization": f"Bearer {token}"}
    with serving(folder, "--require-token") as (_, client):
        assert client.post("/api/v1/ingest", json=envelope(0), headers=bearer).status_code == 200
    password = tmp_path / "password"
    password.write_text("correct horse battery staple\n")
    environ = {
        "RUNVITALS_ADMIN_EMAIL": "ada@example.org",
        "RUNVITALS_ADMIN_NAME": "ada-l",
        "RUNVITALS_ADMIN_PASSWORD_FILE": str(password),
    }
    with serving(folder, "--team", "vision", environ=environ) as (_, client):
        assert client.get("/api/v1/about").json()["auth"] == "accounts"
        assert client.get("/api/v1/runs/curl-1").status_code == 401
        eventually(lambda: client.get("/api/v1/runs/curl-1", headers=bearer).status_code == 200)
        assert client.post("/api/v1/ingest", json=envelope(1), headers=bearer).json()["stored"] is True
        key = in_process("key", "create", "laptop", "--user", "ada-l", "--store", str(folder)).strip()
        mine = {"authorization": f"Bearer {key}"}
        detail = client.get("/api/v1/runs/curl-1", headers=mine)
        assert (detail.status_code, detail.json()["project"]) == (200, "digits")
    with open_metadata_store(str(folder / "catalogue.db")) as metadata_store:
        accounts = metadata_store.accounts
        project = accounts.project_members.get(metadata_store.projects.id("digits"))
        assert project.entity_id == accounts.teams.by_name("vision").id
        assert [member.name for member in accounts.members.of_team("vision")] == ["ada-l"]
        ada = accounts.users.by_name("ada-l")
        assert accounts.credentials.password(ada.id) is not None
    with serving(folder, "--admin-email", "other@example.org") as (_, client):  # there is one already
        assert client.get("/api/v1/about").json()["auth"] == "accounts"
    assert "other" not in in_process("user", "list", "--store", str(folder))


def test_an_administrator_without_a_password_gets_a_link_to_set_one(tmp_path: Path) -> None:
    with serving(tmp_path / "store", "--admin-email", "ada@example.org") as (process, client):
        assert process.stdout.readline().startswith("runvitals: ada sets a password within an hour: http://")
        assert client.get("/api/v1/runs/curl-1").status_code == 401


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--admin-email", "nobody"), "nobody"),
        (("--team", "Über"), "invalid name"),
        (("--team", "admin"), "reserved"),
        (("--trusted-proxies", "10.0.0.300"), "invalid proxy"),
        (("--cold-storage", "missing"), "'missing' is neither a bucket nor an existing folder"),
        (("--cold-storage", "s3://key:secret@x"), "expected s3://BUCKET or s3://BUCKET/PREFIX"),
        (("--cold-after", "7d"), "--cold-after needs --cold-storage"),
        (("--cold-storage", ".", "--cold-after", "1h"), "--cold-after must be at least 1d"),
        (("--settings", "missing.toml"), "could not read the settings missing.toml: No such file"),
    ],
)
def test_what_is_wrong_with_an_option_is_said(tmp_path: Path, words: tuple[str, ...], problem: str) -> None:
    command = ["server", "--listen", "127.0.0.1:0", "--store", str(tmp_path / "store")]
    process = ForkedCommand(*command, *words)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode in (1, 2)
    assert problem in err


def in_process(*command: str) -> str:
    """The output of a command in a process of its own."""
    process = ForkedCommand(*command)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    return out


def test_requests_need_the_token_until_it_is_revoked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = ["--store", str(tmp_path / "store")]
    assert main(["token", "create", "cluster A", *store]) == 0
    secret = capsys.readouterr().out.strip()
    assert secret.startswith("rvt_")
    with serving(tmp_path / "store", "--require-token") as (_, client):
        refused = client.post("/api/v1/ingest", json=envelope(0))
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert refused.json()["error"].startswith("a token is required: ")
        bearer = {"authorization": f"Bearer {secret}"}
        assert client.post("/api/v1/ingest", json=envelope(0), headers=bearer).status_code == 200
        assert client.get("/api/v1/runs", headers={"authorization": "Bearer rvt_no"}).status_code == 401
        assert client.get("/healthz").status_code == 200
        unknown = client.get("/api/v1/about", headers={"authorization": "Bearer rvt_no"})
        assert (unknown.status_code, unknown.headers["www-authenticate"]) == (401, "Bearer")
        assert unknown.json()["error"].startswith("invalid or revoked token: ")
        assert client.get("/api/v1/about", headers=bearer).json()["kind"] == "server"

        # A person with a browser.
        redirect = client.get("/", headers={"accept": "text/html"})
        assert (redirect.status_code, redirect.headers["location"]) == (303, "./login")
        assert 'type="password"' in client.get("/login").text
        assert client.post("/login", data={"token": "rvt_wrong"}).status_code == 403
        entered = client.post("/login", data={"token": secret})
        cookie = entered.headers["set-cookie"].lower()
        assert entered.status_code == 303
        assert "httponly" in cookie
        assert "samesite=lax" in cookie
        assert client.get("/api/v1/runs").json()["total"] == 1

    assert main(["token", "list", *store]) == 0
    listed = capsys.readouterr().out
    assert "cluster A" in listed
    assert secret not in listed
    assert main(["token", "revoke", "1", *store]) == 0
    with serving(tmp_path / "store", "--require-token") as (_, client):
        assert client.get("/api/v1/runs", headers=bearer).status_code == 401


def test_no_secret_in_the_store_s_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["token", "create", "x", "--store", str(tmp_path / "store")])
    secret = capsys.readouterr().out.strip().encode()
    files = [path for path in (tmp_path / "store").iterdir() if path.is_file()]
    assert files
    assert not any(secret in path.read_bytes() for path in files)
    assert os.stat(tmp_path / "store").st_mode & 0o077 == 0


@pytest.mark.parametrize("listen", ["8900", "localhost", "localhost:x", ":8900", "localhost:70000"])
def test_a_wrong_address_is_named(listen: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["server", "--listen", listen])
    assert (
        f"invalid address '{listen}'; expected HOST:PORT, such as 127.0.0.1:8900" in capsys.readouterr().err
    )
