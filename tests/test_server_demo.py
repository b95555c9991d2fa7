"""`scripts/demo --server`: what a newcomer sees of a server."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
from scripts.server_demo import PEOPLE, RUNS

from tests.patience import PATIENCE_S

SOURCE = Path(__file__).parents[1]
COMMAND = [sys.executable, "-m", "scripts.server_demo"]


def test_once(tmp_path: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "--once"],
        cwd=SOURCE,
        env={"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=5 * PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert f"{len(RUNS)} runs, of which {sum(run.live for run in RUNS)} are live" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_people_sign_in_and_see_what_is_theirs(tmp_path: Path) -> None:
    process = subprocess.Popen(
        COMMAND,
        cwd=SOURCE,
        env={"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        lines = [*iter(process.stdout.readline, "Ctrl-C ends the server and removes everything.\n")]
        text = "".join(lines)
        url = re.findall(r"http://[^/]+", text)[0]
        seen = {}
        for person in PEOPLE:
            password = re.findall(rf"^{person.name} +(\S+)", text, re.MULTILINE)[0]
            with httpx.Client(base_url=f"{url}/api/v1", timeout=PATIENCE_S) as browser:
                signed_in = browser.post("/auth/login", json={"name": person.name, "password": password})
                assert signed_in.status_code == 200, signed_in.text
                rows = browser.get("/runs", params={"limit": 100}).json()["runs"]
                seen[person.name] = {row["id"] for row in rows}
        for person in PEOPLE:
            assert seen[person.name] == {run.id for run in RUNS if run.team in person.teams}
        key = re.findall(r"rvt-\w{40}", text)[0]
        me = httpx.get(
            f"{url}/api/v1/account", headers={"Authorization": f"Bearer {key}"}, timeout=PATIENCE_S
        ).json()
        assert (me["kind"], me["name"]) == ("service_account", "ci")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0
    finally:
        process.kill()
        process.communicate()
    assert list(tmp_path.iterdir()) == []
