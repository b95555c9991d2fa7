"""Text from servers and files never controls the terminal, in any command."""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import subprocess
import sys
import threading
import unicodedata
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from runvitals import cli
from runvitals.base.terminal_text import Harmless, harmless, harmless_output
from runvitals.cli import main
from runvitals.journal import frames
from runvitals.journal.writer import JournalWriter
from runvitals.relay.engine.cursor import Cursor
from runvitals.relay.engine.destination_spec import DestinationSpec
from tests.leftovers import end_relay
from tests.patience import PATIENCE_S
from tests.readers.journals.journals import T0
from tests.readers.wandb_files import files
from tests.sdk.runs import environment

SOURCE = Path(cli.__file__).parents[1]
# Colours, the window's title, a bell, a backspace, C1's CSI, an override of the direction, an unseen
# letter, marks that cover other lines, a line of our own.
EVIL = "a\x1b[31mb\x1b]0;title\x07c\bd\x9b2Je\u202ef\u2066g\rh\x7fi\u200bj\u3164k" + "\u0301" * 9
BELOW = f"{EVIL}\nrunvitals: all is well"
# Commands that are tried somewhere below, or print nothing of others.
TRIED = {
    "run", "runs", "show", "findings", "export", "import", "doctor", "settings", "trust", "sync", "login",
    "logout",
    "relay", "token", "store", "simulate", "top", "sample", "metrics", "cloudwatch", "neuron",
    "user", "team", "key", "service-account", "invite", "role", "organisation", "whoami",
    "project", "files", "leet", "usage", "alerts", "automations", "artifact", "sweep", "agent", "report",
    "registry", "docs", "tag", "rename", "note", "delete", "completion",
    "backup", "restore", "upgrade", "downgrade",
}  # fmt: skip
SERVERS = {
    "ui",
    "server",
    "mcp",
}  # which print an address, and log through the same streams; `mcp` speaks JSON


def is_obeyed(text: str) -> list[str]:
    """The characters that a terminal would interpret or hide."""
    return sorted(
        {ascii(char) for char in text if char not in "\n\t" and unicodedata.category(char) in ("Cc", "Cf")}
    )


def is_misleading(text: str) -> bool:
    """Whether a text has a letter that is not seen, or marks that cover other lines."""
    return "\u3164" in text or "\u0301" * 4 in text


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A data folder with a malicious name, project file and run."""
    path = tmp_path / BELOW
    path.mkdir()
    data = path / "data"
    monkeypatch.setenv("RUNVITALS_DIR", str(data))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(path / "config"))
    monkeypatch.setenv("RUNVITALS_COLLECTORS", "cpu,memory")
    for name in ("RUNVITALS_SERVER", "RUNVITALS_TOKEN", "RUNVITALS_DESTINATIONS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(path)
    (path / "runvitals.toml").write_text(f"notes = {json.dumps(EVIL)}\n")
    evil_run(data, "abc")
    yield data
    end_relay(data)  # of a server that rejects everything, it would keep trying for an hour


def evil_run(data: Path, run_id: str) -> None:
    where = str(data / "runs" / run_id)
    about = {"run": run_id, "project": BELOW, "host": BELOW, "labels": {EVIL: EVIL}, "boot_id": EVIL}
    monitor = JournalWriter(
        where, "monitor.node1.1", {**about, "role": "monitor", "pid": 6, "interval_s": 1.0}
    )
    train = JournalWriter(where, "train.node1.7.1", {**about, "role": "train", "pid": 7, "rank": 0})
    facts: dict[str, Any] = {
        "run": {
            "name": BELOW,
            "project": BELOW,
            "tags": [BELOW],
            "notes": BELOW,
            "group": EVIL,
            "job_type": EVIL,
        },
        "sources": {EVIL: {"state": "failing", "reason": BELOW}, BELOW: {"state": "absent", "reason": EVIL}},
        "machine": {"hostname": BELOW, "program": {"argv": [BELOW]}, "command": [BELOW], EVIL: BELOW},
        "config": {BELOW: BELOW, "x": {EVIL: [EVIL]}},
        "summary": {EVIL: BELOW},
    }
    monitor.json(frames.INFO, {"t": T0, **facts})
    for second in range(3):
        monitor.sample(T0 + 1000 * second, {"cpu": 1.0, EVIL: 2.0, f"gpu.0.{EVIL}": 3.0})
        train.json(
            frames.HISTORY, {"t": T0 + 1000 * second, "step": second, "data": {EVIL: BELOW, "loss": 0.5}}
        )
    monitor.json(frames.EVENT, {"t": T0, "name": EVIL, "level": EVIL, "title": BELOW, "text": BELOW})
    monitor.json(frames.LIFECYCLE, {"t": T0 + 3000, "what": "end", "state": EVIL, "exit_code": 0})
    monitor.close()
    train.close()
    cursor = Cursor(where, DestinationSpec(f"nosuch:{EVIL}"), "node1")
    cursor.error = cursor.rejection = cursor.held_why = cursor.closed = BELOW
    cursor.save()
    Path(where, "broken.node1.1.00000.rvj").write_bytes(b"RVJ" + EVIL.encode())


@pytest.fixture(params=[200, 301, 400, 401, 403, 404, 409, 422, 500, 503])
def server(request: pytest.FixtureRequest) -> Iterator[str]:
    """A server with malicious text in every part of its responses."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = json.dumps(
                {"error": BELOW, "kind": BELOW, "message": BELOW, "error_code": EVIL, "acks": EVIL}
            )
            # Also as it is: `json` would write control characters out.
            body = (text + EVIL).encode() if self.path.endswith("ingest") else text.encode()
            reason = EVIL.replace("\r", "").encode("utf-8")
            self.wfile.write(b"HTTP/1.1 %d %s\r\nContent-Length: %d\r\n" % (request.param, reason, len(body)))
            self.wfile.write(
                b"Retry-After: 0\r\nX-Evil: \x1b[31m\r\nDate: \x1b[31m\r\nConnection: close\r\n\r\n"
            )
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, format: str, *args: object) -> None:
            pass

    http_server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http_server.daemon_threads = True
    http_server.block_on_close = False
    thread = threading.Thread(target=http_server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{http_server.server_port}"
    http_server.shutdown()
    thread.join()
    http_server.server_close()


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The output of a command. It may fail, but not with a traceback."""
    try:
        main(list(words))
    except SystemExit:
        pass  # argparse does not like the words
    captured = capsys.readouterr()
    if words[0] != "export":  # to a file or a program as it is
        assert not is_misleading(captured.out), words
    assert not is_misleading(captured.err), words
    assert is_obeyed(captured.out) == [], words
    assert is_obeyed(captured.err) == [], words
    assert "\nrunvitals: all is well" not in captured.out + captured.err, words
    return captured.out + captured.err


@pytest.mark.parametrize(
    "words",
    [
        ["runs"], ["runs", "--json"], ["runs", "--project", EVIL], ["show", "abc"],
        ["show", "abc", "--json"], ["show", EVIL], ["findings", "abc"], ["findings", EVIL], ["export", EVIL],
        ["export", "abc", "--format", "jsonl"], ["relay", "status"], ["relay", "status", "--json"],
        ["relay", EVIL, "--to", "files:out"], ["sync", "abc", "--to", f"nosuch:{EVIL}"],
        ["sync", "abc", "--to", EVIL], ["sync", EVIL], ["sync", "--all", "--to", "files:out"],
        ["settings"], ["settings", "--json"], ["trust"], ["trust", EVIL], ["trust", "--list"],
        ["trust", "--remove"], ["login", EVIL], ["logout", EVIL], ["logout"], ["store", "check"],
        ["store", "stats", "--store", EVIL], ["backup", EVIL], ["restore", EVIL],
        ["upgrade", "--store", EVIL], ["downgrade", EVIL], ["token", "create", EVIL],
        ["token", "list"], ["user", "create", EVIL], ["user", "list"], ["team", "create", EVIL],
        ["team", "members", EVIL], ["key", "create", EVIL, "--user", EVIL], ["key", "revoke", EVIL],
        ["service-account", "create", EVIL], ["service-account", "list"],
        ["role", "create", EVIL, "--base", "member", "--add", EVIL], ["role", "delete", EVIL],
        ["organisation", "set", f"{EVIL}=1"], ["organisation", "release-name", EVIL],
        ["invite", "create", EVIL, EVIL], ["simulate", EVIL], ["import", EVIL], ["metrics", EVIL],
        ["cloudwatch", EVIL],
        ["neuron", "check", EVIL], ["sample"], ["sample", "--json"], ["top"],
        ["leet", EVIL], ["leet", "inspect", "abc"],
        ["usage", EVIL], ["alerts", EVIL], ["artifact", EVIL],
        ["run", "--id", EVIL, "--", "true"], ["run", "--project", EVIL, "--", "true"],
        ["project", "list", EVIL], ["project", "create", f"{EVIL}/{EVIL}"],
        ["files", EVIL], ["files", "abc", "--names", EVIL],
        ["alerts", "check", EVIL, EVIL], ["alerts", "mute", EVIL, EVIL], ["usage", "--by", EVIL],
        ["report", "export", EVIL], ["report", "export", EVIL, "--format", "md"],
        ["registry", "ls"], ["registry", "ls", f"team/{EVIL}"], ["registry", "get", f"team/a/{EVIL}"],
        ["registry", "link", EVIL, f"team/a/{EVIL}"], ["registry", "requests", f"team/{EVIL}"],
        ["sweep", EVIL], ["sweep", "--pause", EVIL], ["agent", EVIL], ["agent", EVIL, "--count", EVIL],
        ["artifact", "put", EVIL, "--name", EVIL], ["artifact", "get", EVIL], ["artifact", "ls", EVIL],
        ["artifact", "rm", EVIL],
        ["docs", EVIL], ["docs", "--search", EVIL], ["tag", EVIL, "--add", EVIL],
        ["tag", "abc", "--add", EVIL],
        ["rename", "abc", EVIL], ["note", EVIL, EVIL], ["delete", EVIL], ["completion", EVIL],
        ["run", "--", EVIL], [EVIL], ["whoami", EVIL], ["doctor"], ["doctor", "--json"],
    ],
    ids=lambda words: "-".join(word if word.isprintable() else "evil" for word in words),
)  # fmt: skip
def test_text_from_journals_files_and_arguments(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert said(capsys, *words) or words == ["trust", "--list"]


def test_every_command_is_tested() -> None:
    assert set(cli.COMMANDS) == TRIED | SERVERS, "is what the new command prints harmless? try it above"


@pytest.mark.parametrize(
    "kind",
    ["", "remote_write:", "otel:", "mlflow:", "wandb:team/digits?base_url="],
    ids=["server", "rw", "otel", "ml", "wb"],
)
def test_text_from_servers(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, server: str, kind: str
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    monkeypatch.setenv("WANDB_API_KEY", "k" * 40)
    said(capsys, "sync", "abc", "--to", f"{kind}{server}")
    said(capsys, "alerts", "--server", server, "list", "vision")
    said(capsys, "usage", "--server", server)
    said(capsys, "relay", "status")
    if not kind:
        monkeypatch.setattr(sys, "stdin", io.StringIO("rvt_secret\n"))
        assert said(capsys, "login", server)
        monkeypatch.setenv("RUNVITALS_SERVER", server)
        assert said(capsys, "doctor")


@pytest.mark.parametrize("server", [200, 401, 422, 503], indirect=True)
def test_text_from_a_server_in_a_training(folder: Path, tmp_path: Path, server: str) -> None:
    script = f"import runvitals\nwith runvitals.init(id='t', notes={EVIL!r}) as run: run.log({{'loss': 1}})"
    more = {"RUNVITALS_SERVER": server, "XDG_CONFIG_HOME": str(tmp_path), "RUNVITALS_DELIVERY_TIMEOUT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment(folder, **more),
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    err = done.stderr.decode()
    assert done.returncode == 0, err
    assert err.count("\n") == len([line for line in err.split("\n") if line.startswith("runvitals: ")])
    assert is_obeyed(err) == []


def test_text_from_a_wandb_file(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evil = [
        files.started(host=BELOW, **{EVIL: BELOW}),
        files.row(0, 1.0, {EVIL: BELOW}),
        b"\xff" + EVIL.encode(),
    ]
    (tmp_path / BELOW / "wandb").mkdir()
    path = files.write(tmp_path / BELOW / "wandb" / f"run-{EVIL}.wandb", *evil, files.printed(1.0, BELOW))
    assert said(capsys, "import", path)
    assert said(capsys, "import", path, "--run", "imported")
    assert said(capsys, "runs")


# -- the mechanism


def test_terminal_streams_escape_control_characters() -> None:
    assert is_obeyed(harmless(BELOW)) == []
    for text in ("plain", "85 °C … 学習", "two\nlines\tand a tab\n", "a,b\r\n", ""):
        assert harmless(text) == text
    assert harmless("a\r\nb\rc\r\n") == "a\r\nb\\rc\r\n"
    beneath = io.StringIO()
    stream = Harmless(beneath)
    print("a\x1b[31m", end="", file=stream)  # type: ignore[call-overload]
    stream.writelines(["b\x07", "c"])
    assert beneath.getvalue() == "a\\x1b[31mb\\x07c"
    assert not stream.isatty()


def test_streams_are_restored(capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.stdout, sys.stderr
    with harmless_output():
        print("\x1b[31m")
    with pytest.raises(SystemExit), harmless_output():
        raise SystemExit(2)
    assert (sys.stdout, sys.stderr) == before
    assert capsys.readouterr().out == "\\x1b[31m\n"


def test_only_known_modules_write_to_the_terminal() -> None:
    """Output elsewhere would bypass `runvitals.terminal`."""
    allowed = {
        "base/terminal_text.py",
        "base/progress.py",  # numbers, and lines through the same streams
        "monitoring/settings/messages.py",  # `notify`, which escapes control characters
        "terminal/top/plain_text.py",  # what it prints is drawn by `drawing`, of inert text
        "terminal/leet/inspection.py",  # JSON in ASCII
        "terminal/leet/terminal_driver.py",  # what Textual has drawn
        "terminal/leet/images/terminal_graphics.py",  # asks the terminal what it can show
        "server/alerts/delivery/apprise_process.py",  # JSON, to the process that started it
        "relay/destinations/cloudwatch/pipe.py",  # to stderr, in the command `neuron`
        "server/user_content/picture_worker.py",  # bytes of pictures, to the process that started it
        "tools/doctor/examination.py",  # looks which letters stdout can show
        "server/http/logs.py",  # to stderr, in the commands `ui` and `server`
    }
    writers = set()
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if not name.startswith("cli/") and _writes_to_terminal(ast.parse(path.read_text())):
            writers.add(name)
    assert writers == allowed


def _writes_to_terminal(tree: ast.AST) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            return True
        if (
            isinstance(node, ast.Attribute)
            and node.attr in ("stdout", "stderr", "__stdout__", "__stderr__")
            and isinstance(node.value, ast.Name)
            and node.value.id == "sys"
        ):
            return True
    return False


def test_text_from_invalid_arguments(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parser = cli.parser()
    assert isinstance(parser, argparse.ArgumentParser)
    assert said(capsys, "show", "abc", f"--{EVIL}")
    assert os.path.isdir(folder)


def test_characters_without_a_code_are_replaced() -> None:
    beneath = io.BytesIO()
    stream = Harmless(io.TextIOWrapper(beneath, "ascii"))
    stream.write("größe … 85 °C\n")
    stream.flush()
    assert beneath.getvalue() == b"gr??e ... 85 C\n"
