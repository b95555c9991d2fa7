"""PostgreSQL is away under a server with accounts: known keys send samples of known runs all the same."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import httpx

from runvitals.server.audit.storage.audit import CLI
from runvitals.server.metadata_store import open_metadata_store
from tests.cli.test_server import envelope, serving, values
from tests.patience import eventually
from tests.server.database import postgresql as postgres

NOW = int(time.time() * 1000)


def make_keys(address: str) -> dict[str, str]:
    """A team, and keys of one of its members: one that is used, and one that is not."""
    with open_metadata_store(address) as store:
        rita = store.accounts.users.create("rita", CLI, NOW, org_role="admin").id
        store.accounts.teams.create("vision", CLI, NOW, administrator=rita)
        return {
            name: store.accounts.keys.create(name, CLI, NOW, user_id=rita)[0] for name in ("used", "unused")
        }


def send(client: httpx.Client, key: str, seq: int, **more: Any) -> httpx.Response:
    body = {**envelope(seq), "entity": "vision", **more}
    return client.post("/api/v1/ingest", json=body, headers={"authorization": f"Bearer {key}"})


def test_known_keys_send_samples_of_known_runs(metadata: postgres.KillableServer, tmp_path: Path) -> None:
    address = metadata.make("vitals")
    keys = make_keys(address)
    with serving(tmp_path / "store", "--metadata", address) as (_, client):
        assert send(client, keys["used"], 0).status_code == 200
        metadata.kill()
        seq, until_s = 1, time.monotonic() + 4.0  # longer than a key is known without being looked up
        while time.monotonic() < until_s:
            sent = send(client, keys["used"], seq, about={"role": "monitor"})
            assert sent.status_code == 200, (seq, sent.text)
            ready = client.get("/readyz")
            assert (ready.status_code, ready.json()["ready"]) == (200, True)
            assert client.get("/metrics", headers={"authorization": f"Bearer {keys['used']}"}).is_success
            seq += 1
        for refused in (
            send(client, keys["used"], 0, run="new"),
            send(client, keys["used"], seq, keys=["a new key"]),
            send(client, keys["unused"], seq),
            client.get("/api/v1/runs", headers={"authorization": f"Bearer {keys['used']}"}),
        ):
            assert refused.status_code == 503, refused.text
            assert int(refused.headers["retry-after"]) > 0
        metadata.start()
        eventually(lambda: send(client, keys["unused"], 0, run="new").status_code == 200)
        client.headers["authorization"] = f"Bearer {keys['used']}"
        assert values(client) == [float(value) for value in range(3 * seq)]
