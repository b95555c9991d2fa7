"""`runvitals relay` in the foreground, also next to other relays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.cli import main
from runvitals.journal import frames, paths
from runvitals.journal.writer import JournalWriter
from runvitals.relay.engine.cursor import Cursor
from runvitals.relay.engine.delivery_lag import DeliveryLag, delivery_lag
from runvitals.relay.engine.destination_spec import DestinationSpec
from runvitals.relay.engine.undelivered import own_host
from runvitals.relay.foreground import STOPPED, WAITING, Foreground
from tests.patience import PATIENCE_S, eventually
from tests.relay.journals import HOST, RUN, Journal, Sender
from tests.relay.real_servers import get
from tests.relay.receiver import Receiver, now_ms


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    receiver = Receiver(str(tmp_path / "server"))
    yield receiver
    receiver.close()


def test_delivers_a_finished_run_and_returns(tmp_path: Path, journal: Journal, receiver: Receiver) -> None:
    for second in range(3):
        journal.sample(second, cpu=float(second))
    journal.log(3, 0, loss=0.5)
    journal.end()
    lines_shown: list[str] = []
    assert Foreground(str(tmp_path), [receiver.url], [RUN], lines_shown.append).run()
    assert lines_shown[-1] == f"abc (node1) to {receiver.url}: delivered, 3 samples, 1 log() rows"
    assert [value for _, value in receiver.samples()["cpu"]] == [0.0, 1.0, 2.0]


def test_waits_for_another_process_that_delivers_the_run(
    tmp_path: Path, journal: Journal, receiver: Receiver
) -> None:
    journal.sample(0, cpu=1.0)
    other = Sender(journal.folder, receiver.url)
    lines_shown: list[str] = []
    relay = Foreground(str(tmp_path), [receiver.url], [RUN], lines_shown.append)
    relay.update()
    assert lines_shown == [f"abc (node1) to {receiver.url}: {WAITING}"]
    other.send()
    other.kill()
    journal.end()
    assert relay.run()
    assert lines_shown[1] == f"abc (node1) to {receiver.url}: delivering"
    assert [value for _, value in receiver.samples()["cpu"]] == [1.0]
    assert len(receiver.received()) == len(set(receiver.received()))


def test_stop_is_recorded_in_the_cursor(tmp_path: Path, journal: Journal, receiver: Receiver) -> None:
    lines_shown: list[str] = []
    relay = Foreground(str(tmp_path), [receiver.url], [RUN], lines_shown.append)
    thread = threading.Thread(target=relay.run)
    journal.monitor.sample(now_ms(), {"cpu": 1.0})
    journal.event("prompt")  # does not wait for a batch to fill
    thread.start()
    eventually(lambda: receiver.runs() == 1)
    journal.monitor.sample(now_ms(), {"cpu": 2.0})
    relay.stop()
    thread.join()
    assert [value for _, value in receiver.samples()["cpu"]] == [1.0, 2.0]  # the last seconds too
    assert Cursor(journal.folder, DestinationSpec(receiver.url), HOST).closed == STOPPED
    assert lines_shown[-1].endswith("stopped, 2 samples, 0 log() rows")


def test_held_records_are_left_to_the_next_relay(
    tmp_path: Path, journal: Journal, receiver: Receiver
) -> None:
    journal.t0 += 2 * 86_400_000
    journal.sample(0, cpu=1.0)
    journal.end()
    lines_shown: list[str] = []
    assert not Foreground(str(tmp_path), [receiver.url], [RUN], lines_shown.append).run()
    assert "records left: times up to 48 h ahead" in lines_shown[-1]
    assert Cursor(journal.folder, DestinationSpec(receiver.url), HOST).closed == ""


def test_unknown_destination_raises(tmp_path: Path, journal: Journal) -> None:
    with pytest.raises(ValueError, match="unknown destination 'nowhere'"):
        Foreground(str(tmp_path), ["nowhere"], [RUN], print).run()


def command(*words: str) -> subprocess.Popen[str]:
    """`runvitals relay` in a new process."""
    environ = {name: text for name, text in os.environ.items() if not name.startswith("RUNVITALS_")}
    environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    boot = "import sys; from runvitals.cli import main; sys.exit(main())"
    every = [sys.executable, "-c", boot, "relay", *words]
    return subprocess.Popen(every, env=environ, stdout=subprocess.PIPE, text=True)


def test_command_delivers_running_runs_until_sigterm(tmp_path: Path, receiver: Receiver) -> None:
    about = {"run": "live", "host": own_host(), "role": "monitor", "pid": 6, "interval_s": 1.0}
    journal = JournalWriter(paths.run_dir("live", str(tmp_path)), f"monitor.{own_host()}.1", about)
    journal.sample(now_ms(), {"cpu": 1.0})
    journal.json(frames.EVENT, {"t": now_ms(), "name": "prompt", "level": "info", "text": ""})
    with command("--to", receiver.url, "--dir", str(tmp_path)) as relay:
        eventually(lambda: receiver.runs() == 1)
        journal.sample(now_ms(), {"cpu": 2.0})
        relay.send_signal(signal.SIGTERM)
        lines_shown, _ = relay.communicate(timeout=PATIENCE_S)
    journal.close()
    assert relay.returncode == 0
    lines = [line.partition(" ")[2] for line in lines_shown.splitlines()]
    assert lines == [
        "delivering all running runs; press Ctrl-C to stop",
        f"live ({own_host()}) to {receiver.url}: delivering",
        f"live ({own_host()}) to {receiver.url}: stopped, 2 samples, 0 log() rows",
    ]
    assert [value for _, value in receiver.samples()["cpu"]] == [1.0, 2.0]


def test_command_serves_metrics_to_prometheus(tmp_path: Path) -> None:
    about = {"run": "live", "host": own_host(), "role": "monitor", "pid": 6, "interval_s": 1.0}
    journal = JournalWriter(paths.run_dir("live", str(tmp_path)), f"monitor.{own_host()}.1", about)
    journal.sample(now_ms(), {"cpu": 50.0})
    journal.json(frames.EVENT, {"t": now_ms(), "name": "prompt", "level": "info", "text": ""})
    with command("--metrics", "127.0.0.1:0", "--dir", str(tmp_path)) as relay:
        assert relay.stdout is not None
        url = relay.stdout.readline().split()[-1]
        eventually(lambda: b"runvitals_process_cpu_utilization_ratio{" in get(url)[0])
        relay.send_signal(signal.SIGINT)
        relay.communicate(timeout=PATIENCE_S)
    journal.close()
    assert relay.returncode == 0


def test_status_shows_lag_and_dropped_values(
    tmp_path: Path, journal: Journal, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    sender = Sender(journal.folder, receiver.url)
    journal.monitor.sample(1000, {"cpu": 1.0, "memory_percent": 2.0})  # 1970: never taken
    sender.send()
    journal.sample(0, cpu=1.0)  # a minute ago
    journal.sample(1, cpu=1.0)
    assert main(["relay", "status", "--json", "--dir", str(tmp_path)]) == 0
    (delivery,) = json.loads(capsys.readouterr().out)["deliveries"]
    assert delivery["counts"]["dropped"] == 2
    assert delivery["lag"]["records"] == 2
    assert 59.0 < delivery["lag"]["seconds"] < 120.0
    assert main(["relay", "status", "--dir", str(tmp_path)]) == 0
    heading, row = capsys.readouterr().out.splitlines()[1:3]
    assert dict(zip(heading.split(), row.split(), strict=False))["DESTINATION"] == receiver.url
    sender.send()
    assert delivery_lag(sender.cursor) == DeliveryLag(0, 0)
    sender.kill()
