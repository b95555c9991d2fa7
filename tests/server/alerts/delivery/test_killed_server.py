"""A server that is killed while it delivers: nothing is lost, and the order stays."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import SimpleNamespace

from sqlalchemy import update

from runvitals.server.alerts.delivery.channels import Channels
from runvitals.server.alerts.delivery.delivery import NotificationDelivery
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.database.tables.alerts import notification
from runvitals.server.events.outbox import Notification, add
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.outbound.policy import outbound_policy
from tests.empty_metadata import new_metadata_store
from tests.patience import PATIENCE_S
from tests.server.outbound.site import Answer, Site, serving

NOW = 1_800_000_000_000
KEYS = ["first", "second", "third"]


@contextmanager
def running_server(folder: Path, certificate: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A server that trusts a certificate."""
    command = [sys.executable, "-m", "runvitals", "server", "--listen", "127.0.0.1:0", "--store", str(folder)]
    environment = {**os.environ, "SSL_CERT_FILE": str(certificate)}
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait(PATIENCE_S)


def prepare(store: MetadataStore, site: Site) -> None:
    """A team with a webhook, and notifications for it that wait."""
    accounts = store.accounts
    accounts.settings.put({"outbound_allow": [f"127.0.0.1:{site.port}"]}, CLI, NOW)
    team = accounts.teams.create("vision", CLI, NOW).id
    fields = {"url": f"https://127.0.0.1:{site.port}/hook", "enabled": True, "payload": None}
    hook = store.alerts.destinations.create("webhook", team, "ci", fields, CLI, NOW)
    for key in KEYS:
        new = Notification(key, "test", f"webhook:{hook.id}", "run:1", key, {}, 1, team)
        store.write(lambda connection, new=new: add(connection, new))  # type: ignore[misc]


def end_lease(store: MetadataStore) -> None:
    """As if the time had passed after which a server that claimed a notification counts as dead."""
    store.write(lambda connection: connection.execute(update(notification).values(next_ms=1)))


def deliver_by_another(store: MetadataStore, site: Site) -> None:
    """Deliver everything as another server does."""
    policy = outbound_policy([f"127.0.0.1:{site.port}"])
    outside = SimpleNamespace(box=None, fetcher=site.fetcher(policy), known_server_url=lambda: None)
    channels = Channels(store, outside, None, None, lambda: NOW)  # type: ignore[arg-type]
    delivery = NotificationDelivery(store.alerts.outbox, channels.by_target, lambda: NOW)
    while delivery.deliver_due():
        pass
    delivery.close()


def test_a_killed_server_loses_nothing(tmp_path: Path) -> None:
    begun, killed = threading.Event(), threading.Event()

    def wait(handler: BaseHTTPRequestHandler) -> Answer:
        begun.set()
        killed.wait(PATIENCE_S)
        return 200, {}, b""

    folder = tmp_path / "store"
    folder.mkdir(mode=0o700)
    with serving(tmp_path) as site, new_metadata_store(folder / "catalogue.db") as store:
        site.answers["/hook"] = wait
        prepare(store, site)
        with running_server(folder, tmp_path / "certificate.pem") as process:
            assert begun.wait(PATIENCE_S)
            process.kill()
            process.wait(PATIENCE_S)
        killed.set()
        assert store.alerts.outbox.length().waiting == len(KEYS)
        end_lease(store)
        deliver_by_another(store, site)
        sent = [headers["X-Runvitals-Delivery"] for _, headers in site.requests]
    assert sent == ["1", "1", "2", "3"]
