"""`scripts/demo --server`: a server with two teams, people in every role, and simulated runs that are live.

Everything is in a temporary folder, which is removed at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from runvitals.cli.formatting import table
from runvitals.cli.store_options import METADATA_FILE
from runvitals.server.account_store import AccountStore
from runvitals.server.accounts.passwords import Passwords
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.metadata_store import open_metadata_store

PATIENCE_S: Final = 300.0
"""The server and the runs may take this long to start, on a busy machine."""
_DAY_MS: Final = 86_400_000
_LABELLER: Final = "Labeller"


@dataclass(frozen=True)
class Person:
    """A user of the demo. `teams`: the role in each."""

    name: str
    display_name: str
    about: str
    teams: Mapping[str, str]
    administrator: bool = False


PEOPLE: Final = (
    Person("ada", "Ada Lovelace", "administrator of the organisation", {"vision": "admin"}, True),
    Person("grace", "Grace Hopper", "administrator of speech", {"speech": "admin", "vision": "member"}),
    Person("alan", "Alan Turing", "member of vision", {"vision": "member"}),
    Person(
        "katherine",
        "Katherine Johnson",
        "views vision, member of speech",
        {"vision": "viewer", "speech": "member"},
    ),
    Person("edsger", "Edsger Dijkstra", "has the custom role Labeller in vision", {"vision": _LABELLER}),
)
TEAMS: Final = {"vision": "Computer vision", "speech": "Speech"}
SERVICE_ACCOUNT: Final = "ci"
LIVE_HOURS: Final = "24"
"""Simulated hours of the live runs: 48 minutes at the default speed."""


@dataclass(frozen=True)
class DemoRun:
    """A simulated run. `sender`: whose key sends it; `author`: the user whom the service account names."""

    id: str
    team: str
    project: str
    sender: str
    options: Sequence[str]
    author: str = ""
    live: bool = True


RUNS: Final = (
    DemoRun("detector-large", "vision", "detection", "alan", ("--profile", "h100x8", "--nodes", "4")),
    DemoRun(
        "detector-small", "vision", "detection", "grace", ("--profile", "a100", "--nodes", "2", "--seed", "1")
    ),
    DemoRun("nightly-42", "vision", "nightly", SERVICE_ACCOUNT, ("--profile", "trn2", "--seed", "2"), "alan"),
    DemoRun(
        "whisper-finetune", "speech", "recognition", "katherine", ("--profile", "mi300x8", "--nodes", "2")
    ),
    DemoRun("laptop-test", "speech", "recognition", "grace", ("--profile", "m3", "--seed", "3")),
    DemoRun(
        "detector-baseline", "vision", "detection", "ada", ("--profile", "cpu", "--hours", "0.2"), live=False
    ),
    DemoRun(
        "speech-baseline",
        "speech",
        "recognition",
        "grace",
        ("--profile", "cpu", "--hours", "0.1"),
        live=False,
    ),
)


@dataclass
class Secrets:
    """Secrets shown once: passwords and keys by user or service account, and the path of the invitation."""

    passwords: dict[str, str] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    invitation: str = ""


def create_people(accounts: AccountStore, now_ms: int) -> Secrets:
    """Fill an empty metadata store."""
    created, hasher = Secrets(), Passwords()
    for person in PEOPLE:
        user = accounts.users.create(
            person.name,
            CLI,
            now_ms,
            display_name=person.display_name,
            address=f"{person.name}@example.org",
            verified=True,
            org_role="admin" if person.administrator else "member",
        )
        created.passwords[person.name] = "-".join(secrets.token_hex(2) for _ in range(4))
        accounts.credentials.set_password(user.id, hasher.hash(created.passwords[person.name]), CLI, now_ms)
        created.keys[person.name], _ = accounts.keys.create("demo", CLI, now_ms, user_id=user.id)
    accounts.roles.create(_LABELLER, "viewer", ["run:update"], "Names and tags runs", CLI, now_ms)
    for name, display_name in TEAMS.items():
        accounts.teams.create(name, CLI, now_ms, display_name=display_name)
    for person in PEOPLE:
        for team, role in person.teams.items():
            accounts.members.add(team, person.name, role, CLI, now_ms)
    vision = accounts.teams.by_name("vision")
    account = accounts.service_accounts.create(SERVICE_ACCOUNT, vision.id, CLI, now_ms)
    created.keys[SERVICE_ACCOUNT], _ = accounts.keys.create(
        "nightly training", CLI, now_ms, service_account_id=account.id, expires_ms=now_ms + 90 * _DAY_MS
    )
    secret, _ = accounts.invitations.create("speech", "linus@example.org", "member", CLI, now_ms)
    created.invitation = f"/-/invitation#{secret}"
    return created


class Demo:
    """The processes of the demo: use it with `with`.

    Attributes:
        url: the server's address.
        made: what the demo created.
    """

    def __init__(self, folder: Path, listen: str, speed: str) -> None:
        self._folder = folder
        self._listen = listen
        self._speed = speed
        self._processes = ExitStack()
        self._runs: dict[str, subprocess.Popen[bytes]] = {}
        self.url = ""
        self.made = Secrets()

    def __enter__(self) -> Demo:
        try:
            self._start()
        except BaseException:
            self._processes.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._processes.close()

    def _start(self) -> None:
        store = self._folder / "store"
        store.mkdir(mode=0o700)
        with open_metadata_store(str(store / METADATA_FILE)) as metadata_store:
            self.made = create_people(metadata_store.accounts, time.time_ns() // 1_000_000)
        server = self._runvitals("server", ["--listen", self._listen, "--store", str(store)], {})
        self.url = self._address(server)
        for run in RUNS:
            self._runs[run.id] = self._simulate(run)

    def _address(self, server: subprocess.Popen[bytes]) -> str:
        assert server.stdout is not None
        line = server.stdout.readline().decode()
        if not line:
            raise OSError(f"the server did not start:\n{(self._folder / 'server.log').read_text()}")
        return line.split()[1].rstrip("/")

    def _simulate(self, run: DemoRun) -> subprocess.Popen[bytes]:
        environment = {
            "RUNVITALS_SERVER": self.url,
            "RUNVITALS_TOKEN": self.made.keys[run.sender],
            "RUNVITALS_ENTITY": run.team,
            "RUNVITALS_PROJECT": run.project,
            "RUNVITALS_RUN_ID": run.id,
            "RUNVITALS_NAME": run.id.replace("-", " "),
            "RUNVITALS_USERNAME": run.author,
            "RUNVITALS_SAMPLING_INTERVAL": "1",
        }
        pace = ("--speed", self._speed, "--hours", LIVE_HOURS) if run.live else ("--speed", "max")
        return self._runvitals("simulate", [*run.options, *pace], environment, run.id)

    def _runvitals(
        self, command: str, options: Sequence[str], more: Mapping[str, str], log: str = "server"
    ) -> subprocess.Popen[bytes]:
        """Start a command, which is ended with the demo."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("RUNVITALS_")}
        environment = {
            "RUNVITALS_DIR": str(self._folder / "data"),
            "XDG_CONFIG_HOME": str(self._folder / "config"),
        }
        with open(self._folder / f"{log}.log", "wb") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "runvitals", command, *options],
                cwd=self._folder,
                env={**inherited, **environment, **{name: value for name, value in more.items() if value}},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if command == "server" else file,
                stderr=file,
                start_new_session=True,  # Ctrl-C is for the demo, which then ends them in order
            )
        self._processes.callback(_end, process)
        return process

    def wait_for_runs(self, stop: threading.Event) -> dict[str, str]:
        """Wait until the server has all runs, each with the values of a host; returns their states.

        Args:
            stop: ends the wait early.

        Raises:
            OSError: a simulation failed, or it takes too long.
        """
        until_s = time.monotonic() + PATIENCE_S
        while True:
            states = {str(row["id"]): str(row["state"]) for row in self._listed() if row["last"]}
            missing = [run.id for run in RUNS if run.id not in states]
            if not missing or stop.wait(0.5):
                return states
            failed = [name for name in missing if self._runs[name].poll()]
            if failed or time.monotonic() > until_s:
                name = (failed or missing)[0]
                raise OSError(f"run {name} did not arrive:\n{(self._folder / f'{name}.log').read_text()}")

    def _listed(self) -> list[dict[str, object]]:
        request = urllib.request.Request(
            f"{self.url}/api/v1/runs?limit=100&last=cpu",
            # Grace is in both teams; Ada administers the organisation, and may not read the runs of speech.
            headers={"Authorization": f"Bearer {self.made.keys['grace']}"},
        )
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
            rows: list[dict[str, object]] = json.load(response)["runs"]
        return rows

    def text(self) -> str:
        """Return who may sign in where, and what else there is."""
        header = ["USER", "PASSWORD", "WHO"]
        people = [[person.name, self.made.passwords[person.name], person.about] for person in PEOPLE]
        return "\n".join(
            (
                f"sign in at      {self.url}/-/login",
                f"invitation      {self.url}{self.made.invitation}  to speech, for linus@example.org",
                f"service account vision/{SERVICE_ACCOUNT}, key {self.made.keys[SERVICE_ACCOUNT]}",
                "",
                table([header, *people]),
            )
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


@contextmanager
def _interrupted() -> Iterator[threading.Event]:
    """Set by Ctrl-C and SIGTERM."""
    stop = threading.Event()
    before = {
        number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def main(words: Sequence[str] | None = None) -> int:
    """Run the demo; returns the exit code."""
    parser = argparse.ArgumentParser(prog="scripts/demo --server", description=__doc__)
    parser.add_argument("--once", action="store_true", help="end as soon as all runs are on the server")
    parser.add_argument("--listen", default="127.0.0.1:0", metavar="HOST:PORT", help="default: a free port")
    parser.add_argument("--speed", default="30", help="of the live runs, times real time; default: 30")
    arguments = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="runvitals-demo-") as folder:
        try:
            with _interrupted() as stop, Demo(Path(folder), arguments.listen, arguments.speed) as demo:
                print(demo.text(), flush=True)
                states = list(demo.wait_for_runs(stop).values())
                print(f"\n{len(states)} runs, of which {states.count('running')} are live", flush=True)
                if not arguments.once:
                    print("Ctrl-C ends the server and removes everything.", flush=True)
                    stop.wait()
        except OSError as error:
            print(f"scripts/demo: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
