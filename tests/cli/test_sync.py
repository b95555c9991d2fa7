"""The commands `runvitals sync`, `login`, `logout` and `relay status`, with a real server."""

from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.cli import main
from runvitals.journal import frames, paths
from runvitals.journal.writer import JournalWriter
from runvitals.relay.engine.cursor import find_cursors
from runvitals.relay.engine.undelivered import find_undelivered
from runvitals.server.files.reserved_space import FileLimits
from tests.relay.journals import RUN, Journal, MediaJournal
from tests.relay.receiver import Receiver, now_ms
from tests.server.serving import serving


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    receiver = Receiver(str(tmp_path / "server"))
    yield receiver
    receiver.close()


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with two runs that were recorded offline, one of them on two hosts."""
    monkeypatch.setenv("RUNVITALS_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    for run, host in (("one", "node1"), ("two", "node1"), ("two", "node2")):
        record(tmp_path / "data", run, host)
    return tmp_path / "data"


def record(data: Path, run: str, host: str) -> None:
    about = {"run": run, "project": "p", "host": host, "role": "monitor", "pid": 6, "interval_s": 1.0}
    journal = JournalWriter(paths.run_dir(run, str(data)), f"monitor.{host}.1", about)
    journal.sample(now_ms() - 5000, {"cpu": 1.0})
    journal.json(frames.LIFECYCLE, {"t": now_ms(), "what": "end", "state": "finished", "exit_code": 0})
    journal.close()


def test_run_is_delivered_once(data: Path, receiver: Receiver, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sync", "one", "--to", receiver.url]) == 0
    assert (
        f"one (node1) to {receiver.url}: 1 samples, 0 log() rows, 1 other records" in capsys.readouterr().out
    )
    assert receiver.run("one").state == "finished"
    sent = len(receiver.requests)
    assert main(["sync", "one", "--to", receiver.url]) == 0
    assert len(receiver.requests) == sent
    assert main(["relay", "status", "--json"]) == 0
    reported = json.loads(capsys.readouterr().out.partition("\n")[2])
    assert reported["relay"] is None
    (delivery,) = reported["deliveries"]
    assert (delivery["run"], delivery["destination"], delivery["state"]) == ("one", receiver.url, "delivered")
    assert delivery["counts"]["samples"] == 1


def test_all_runs_of_all_hosts_are_delivered(
    data: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RUNVITALS_SERVER", receiver.url)
    assert main(["sync", "--all"]) == 0
    assert receiver.runs() == 2
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert main(["relay", "status"]) == 0
    reported = capsys.readouterr().out
    assert reported.startswith("no relay is running\n")
    assert reported.count(" delivered ") == 3


def test_unreachable_server_is_an_error(
    data: Path, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    receiver.faults.extend([(503, "0")] * 5)
    assert main(["sync", "one", "--to", receiver.url]) == 1
    assert "one (node1) was not delivered: " in capsys.readouterr().err
    assert main(["relay", "status"]) == 0
    assert capsys.readouterr().out == "no relay is running\n", "nothing is left of it"


def test_server_that_is_down_is_named_with_the_reason(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown: list[str] = []
    monkeypatch.setattr(time, "sleep", lambda seconds: shown.append(capsys.readouterr().err))
    assert main(["sync", "one", "--to", "http://127.0.0.1:1"]) == 1
    assert len(shown) == 4
    for text in shown:
        assert text.startswith("runvitals: could not reach http://127.0.0.1:1: ")
        assert "; trying again in " in text
    reported = capsys.readouterr().err
    assert (
        "one (node1) was not delivered: could not reach http://127.0.0.1:1: Connection refused\n" in reported
    )
    assert "Errno" not in reported


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (FileLimits(free_bytes=1 << 60), "2 records left: the server cannot store files now: 503 the disk"),
        (FileLimits(file_bytes=1), "1 batches were rejected"),
    ],
    ids=["full disk", "limit"],
)
def test_what_the_server_did_not_take_is_told_each_time(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], limits: FileLimits, message: str
) -> None:
    journal = Journal(data)
    media = MediaJournal(journal)
    media.log("weights", b"1, 2, 3")
    for writer in (media.journal, journal.monitor, journal.train):
        writer.close()
    with serving(tmp_path / "limited") as served:
        files = served.app.services.files
        before, files.limits = files.limits, limits
        for _ in range(2):
            assert main(["sync", RUN, "--to", served.url]) == 1
            reported = capsys.readouterr()
            assert message in reported.out
            assert f"not delivered: {RUN} to {served.url}" in reported.err
        files.limits = before
        kept = limits.free_bytes != before.free_bytes
        assert main(["sync", RUN, "--to", served.url]) == (0 if kept else 1)


def test_a_server_that_asks_for_an_hour_is_not_waited_for(
    data: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail(f"waited for {seconds} s"))
    receiver.faults.append((503, "3600"))
    assert main(["sync", "one", "--to", receiver.url]) == 1
    assert "one (node1) was not delivered: " in capsys.readouterr().err


def test_missing_package_is_named_with_the_extra_that_installs_it(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "runvitals.relay.destinations.files.arrow_formats", raising=False)
    assert main(["sync", "one", "--to", f"files:{data}/out?format=parquet"]) == 1
    reported = capsys.readouterr().err
    remedy = f"{sys.executable} -m pip install 'runvitals[parquet]'"
    assert f"runvitals: files requires pyarrow, which {sys.executable} lacks: {remedy}\n" in reported


@pytest.mark.parametrize(
    "destination", ["http://127.0.0.1:1", "cloudwatch:us-west-2/T", "prometheus:no port"]
)
def test_a_failed_sync_leaves_nothing(
    destination: str, data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    before = sorted(data.rglob("*"))
    assert main(["sync", "--all", "--to", destination]) == 1
    assert sorted(data.rglob("*")) == before
    assert main(["relay", "status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["deliveries"] == []


def test_no_relay_continues_what_a_sync_has_begun(
    data: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    destination = f"remote_write:{receiver.url}/nowhere"  # 404
    assert main(["sync", "one", "--to", destination]) == 1
    (cursor,) = find_cursors(str(data / "runs" / "one"))
    assert cursor.by_hand
    assert find_undelivered(str(data), "node1", []) == {}


def test_failing_run_does_not_block_others(
    data: Path, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sync", "nothing", "one", "two", "--to", receiver.url]) == 1
    assert receiver.runs() == 2
    reported = capsys.readouterr()
    assert len(reported.out.splitlines()) == 3
    assert reported.err.splitlines()[-1] == "runvitals: not delivered: nothing"


def test_unreachable_server_does_not_block_other_destinations(
    data: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    for run in ("three", "four", "five"):
        record(data, run, "node1")
    away = "http://127.0.0.1:1"
    monkeypatch.setenv("RUNVITALS_SERVER", away)
    monkeypatch.setenv("RUNVITALS_DESTINATIONS", receiver.url)
    assert main(["sync", "--all"]) == 1
    assert receiver.runs() == 5
    reported = capsys.readouterr().err
    assert reported.count("was not delivered: ") == 3
    assert f"{away} is unreachable: skipping the remaining runs" in reported
    last = reported.splitlines()[-1]
    assert last.startswith("runvitals: not delivered: ")
    assert last.count(f" to {away}") == 5
    assert receiver.url not in last


def test_rejected_token_is_not_stored(
    data: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    receiver.required_token = "rvt_right"
    for typed, code in (("rvt_wrong", 1), ("rvt_right", 0)):
        monkeypatch.setattr(sys, "stdin", io.StringIO(typed + "\n"))
        assert main(["login", receiver.url]) == code
        assert ("rejected the token (401)" in capsys.readouterr().err) == (code == 1)
        assert main(["sync", "one", "--to", receiver.url]) == code
        assert ("requires a token" in capsys.readouterr().err) == (code == 1)
    assert receiver.run("one").state == "finished"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["sync", "one"], "no destination: use --to URL"),
        (["sync", "one", "--to", "http://me:secret@host"], "invalid setting"),
        (["sync", "nothing", "--to", "http://127.0.0.1:9"], "no run 'nothing'"),
        (["sync", "one", "--to", "nowhere:/x"], "unknown destination 'nowhere'"),
    ],
)
def test_invalid_options_are_reported(
    data: Path, words: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 1
    assert text in capsys.readouterr().err


def test_stored_token_is_used_until_logout(
    data: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("rvt_secret\n"))
    assert main(["login", receiver.url]) == 0
    path = Path(capsys.readouterr().out.removeprefix("token stored in ").strip())
    assert path.stat().st_mode & 0o077 == 0
    assert main(["sync", "one", "--to", receiver.url]) == 0
    assert set(receiver.tokens) == {"Bearer rvt_secret"}
    assert main(["logout"]) == 0
    assert main(["logout"]) == 1
    assert main(["sync", "two", "--to", receiver.url]) == 0
    assert receiver.tokens[-1] == ""


def test_invalid_token_is_not_stored(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n"))
    assert main(["login", "http://host:8900"]) == 1
    assert "the token is not valid; expected rvt_…, as printed by" in capsys.readouterr().err
