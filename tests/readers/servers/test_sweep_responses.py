"""Agents with a server that answers anything: nothing is started, and the error says what is wrong."""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runvitals.cli import main
from runvitals.readers.servers import connection
from runvitals.readers.servers.sweeps.training import ProgramTraining
from tests.readers.servers.test_sweeps import assigned_run
from tests.relay.recording_server import RecordingServer

SWEEP = {"id": "s1", "configuration": {"program": "train.py", "command": ["touch", "started"]}}
AGENT = {"id": "7"}


def nested(depth: int, lists: bool = False) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value] if lists else {"a": value}
    return value


def start(run: object = "r1", **parameters: Any) -> dict[str, Any]:
    return {"commands": [{"do": "run", "run": run, "parameters": parameters}]}


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RecordingServer]:
    server = RecordingServer()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RUNVITALS_SERVER", server.url)
    yield server
    server.close()


def outcome(server: RecordingServer, bodies: list[Any], capsys: pytest.CaptureFixture[str]) -> str:
    """What an agent prints that gets these answers. It must end with an error, and start nothing."""
    for each in bodies:
        body = each if isinstance(each, bytes) else json.dumps(each).encode()
        server.responses.append((200, {}, body))
    assert main(["agent", "digits/s1"]) == 1
    assert not Path("started").exists()
    printed = capsys.readouterr().err
    assert "Traceback" not in printed
    return printed


@pytest.mark.parametrize(
    ("bodies", "problem"),
    [
        ([[]], "an invalid answer; expected a JSON object"),
        ([None], "an invalid answer; expected a JSON object"),
        (["x" * 1000], "expected a JSON object"),
        ([{"id": "s1"}], "an invalid answer; expected a JSON object"),
        ([{"id": "s1", "configuration": {"program": ["a"]}}], "an invalid program; expected a text"),
        ([{"id": "s1", "configuration": {"command": {"a": 1}}}], "an invalid command; expected a text, or a"),
        ([{"id": "s1", "configuration": {"command": [1]}}], "an invalid command"),
        ([SWEEP, {}], "an invalid id; expected"),
        ([SWEEP, {"id": "../x"}], "an invalid id '../x'"),
        ([SWEEP, AGENT, {}], "an invalid commands; expected a list"),
        ([SWEEP, AGENT, {"commands": [1]}], "an invalid answer 1; expected a JSON object"),
        ([SWEEP, AGENT, {"commands": [{}] * 1001}], "a list of at most 1,000 commands"),
        ([SWEEP, AGENT, start("../../x")], "an invalid run '../../x'; expected"),
        ([SWEEP, AGENT, start(7)], "an invalid run 7"),
        ([SWEEP, AGENT, start("")], "an invalid run ''"),
        ([SWEEP, AGENT, start(a=nested(500))], "nested at most 20 levels deep"),
        ([SWEEP, AGENT, start(a=nested(500, lists=True))], "nested at most 20 levels deep"),
        ([SWEEP, AGENT, start(a=list(range(20_000)))], "at most 10,000 values"),
        ([SWEEP, AGENT, start(a="x\0")], "texts that a command line can hold"),
        ([SWEEP, AGENT, start(a="\ud800")], "texts that a command line can hold"),
        ([SWEEP, AGENT, start(**{"x\0": 1})], "texts that a command line can hold"),
        ([SWEEP, AGENT, {"commands": [{"do": "run", "run": "r1", "parameters": [1]}]}], "a JSON object"),
        ([SWEEP, AGENT, start(a="x" * 200_000)], "expected at most 100,000"),
        ([b"[" * 100_000], "with invalid JSON"),
        ([b"\xff"], "with invalid JSON"),
    ],
)  # fmt: skip
def test_answers_that_are_none(
    bodies: list[Any], problem: str, server: RecordingServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert problem in outcome(server, bodies, capsys)


def test_a_small_answer_that_unpacks_to_a_huge_one(
    server: RecordingServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(connection, "MAX_RESPONSE_BYTES", 100_000)
    packed = gzip.compress(b" " * 100_000 + json.dumps(SWEEP).encode())
    assert len(packed) < 1000
    server.responses.append((200, {"Content-Encoding": "gzip"}, packed))
    assert main(["agent", "digits/s1"]) == 1
    assert "with invalid JSON" in capsys.readouterr().err


def test_commands_of_a_newer_server_are_left_out(server: RecordingServer) -> None:
    newer = {"commands": [{"do": "dance"}, {"do": "exit"}]}
    for body in (SWEEP, AGENT, newer, {"commands": []}):
        server.responses.append((200, {}, json.dumps(body).encode()))
    assert main(["agent", "digits/s1"]) == 0


def test_values_of_variables_are_not_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MY_THING", "zebra-crossing")
    monkeypatch.setenv("TOKEN", "zebra-token")
    code = "import sys; sys.exit(sys.argv[1:] != ['zebra-crossing', 'zebra-token', 'x zebra-token'])"
    command = [sys.executable, "-SEc", code, "${envvar:MY_THING}", "${envvar:TOKEN}", "x zebra-token"]
    assert ProgramTraining({"program": "", "command": command}).execute(assigned_run())
    printed = capsys.readouterr().err
    assert "'${envvar:MY_THING}' '${envvar:TOKEN}' 'x ***'" in printed
    assert os.environ["TOKEN"] not in printed.replace(code, "")
