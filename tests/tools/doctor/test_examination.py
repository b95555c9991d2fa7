"""Checks of storage, monitor, destinations and terminal, with real files, processes and servers."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from runvitals.monitoring.settings.settings import resolve
from runvitals.tools.doctor import delivery, storage, system, terminal, trial_run
from runvitals.tools.doctor.examination import Examination, _safely
from runvitals.tools.doctor.finding import Check


def settings(**values: Any) -> dict[str, Any]:
    return {**resolve({}, {"HOME": "/nowhere"}, "/"), **values}


def by_name(findings: Iterator[Check]) -> dict[str, Check]:
    return {finding.name: finding for finding in findings}


def test_folder_that_does_not_exist_yet(tmp_path: Path) -> None:
    findings = by_name(storage.findings(str(tmp_path / "not" / "yet")))
    assert findings["data folder"].state == "PASS"
    assert findings["free space"].text.endswith("GiB free")
    assert not list(tmp_path.iterdir())  # nothing is left behind


def test_folder_that_is_not_writable() -> None:
    findings = by_name(storage.findings("/proc/runvitals"))
    assert findings["data folder"].state == "FAIL"
    assert "RUNVITALS_DIR" in findings["data folder"].remedy


def test_trial_run_of_a_monitor(tmp_path: Path) -> None:
    findings = by_name(trial_run.findings(settings()))
    assert findings["start"].state == "PASS", findings["start"]
    assert findings["cost"].text.endswith("of memory")
    assert not list(tmp_path.iterdir())


def test_checks_of_the_system() -> None:
    findings = by_name(system.findings(settings()))
    assert {"runvitals", "python", "kernel", "container", "PID namespace", "clock"} <= set(findings)
    assert "GiB" in findings["cgroup memory"].text or findings["cgroup memory"].state == "ABSENT"


class Answering(BaseHTTPRequestHandler):
    """A server that accepts one token."""

    def do_GET(self) -> None:
        is_authorized = self.headers.get("Authorization") == "Bearer rvt_good"
        status = 200 if self.path == "/healthz" or is_authorized else 401
        self.send_response(status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Answering) as listening:
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{listening.server_port}"
        listening.shutdown()
        thread.join()


def delivered(folder: Path, environ: Mapping[str, str], **values: Any) -> dict[str, Check]:
    environ = {"XDG_CONFIG_HOME": str(folder), "RUNVITALS_SERVER": str(values.get("server", "")), **environ}
    return by_name(delivery.findings(settings(**values), str(folder), environ))


def test_server_that_accepts_our_token(server: str, tmp_path: Path) -> None:
    findings = delivered(tmp_path, {"RUNVITALS_TOKEN": "rvt_good"}, server=server)
    assert findings[server].state == "PASS", findings[server]
    assert "accepts our token" in findings[server].text
    assert findings["relay"].state == "PASS"


@pytest.mark.parametrize(
    ("environ", "why"), [({}, "none is stored"), ({"RUNVITALS_TOKEN": "rvt_old"}, "rejects our token")]
)
def test_server_that_rejects_our_token(
    server: str, tmp_path: Path, environ: dict[str, str], why: str
) -> None:
    finding = delivered(tmp_path, environ, server=server)[server]
    assert finding.state == "FAIL"
    assert why in finding.text
    assert finding.remedy == f"runvitals login {server}"


def test_unreachable_server(tmp_path: Path) -> None:
    finding = delivered(tmp_path, {}, server="http://127.0.0.1:1")["http://127.0.0.1:1"]
    assert finding.state == "FAIL"
    assert "refused" in finding.text


def test_unknown_destination(tmp_path: Path) -> None:
    finding = delivered(tmp_path, {}, destinations=["fridge:shelf"])["fridge:shelf"]
    assert (finding.state, "unknown destination 'fridge'" in finding.text) == ("FAIL", True)


def test_no_destination(tmp_path: Path) -> None:
    assert delivered(tmp_path, {})["destinations"].state == "ABSENT"


def test_ascii_terminal() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), "ascii")
    assert by_name(terminal.findings(stream, {}))["characters"].state == "PARTIAL"


def test_check_that_raises_is_reported_as_a_failure() -> None:
    def broken() -> Iterator[Check]:
        yield Check("system", "python", "PASS", "3.11")
        raise RuntimeError("out of luck")

    findings = list(_safely("system", broken))
    assert [finding.state for finding in findings] == ["PASS", "FAIL"]
    assert "out of luck" in findings[1].text
    assert Examination(findings).failed
