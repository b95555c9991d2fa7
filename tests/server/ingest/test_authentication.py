"""Which requests a shared server accepts, with and without tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import anyio
import httpx
import pytest

from runvitals.server.build import ServerOptions, build_server
from runvitals.server.ingest.endpoint import PATH
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.shared_server import SharedServer
from runvitals.store.samples.sqlite import SqliteChunks
from tests.empty_metadata import new_metadata_store

NOW = 1_760_000_000_000
ENVELOPE = {"run": "abc", "writer": "curl", "seq": 1, "keys": ["cpu"], "t": [NOW], "v": [[1.5]]}
Post = Callable[..., httpx.Response]


@pytest.fixture
def metadata_store(tmp_path: Any) -> Iterator[MetadataStore]:
    with new_metadata_store(tmp_path / "catalogue.db") as metadata_store:
        yield metadata_store


@pytest.fixture
def serve(tmp_path: Any, metadata_store: MetadataStore) -> Iterator[Callable[[bool], Post]]:
    servers: list[SharedServer] = []
    with SqliteChunks(str(tmp_path / "store")) as store:

        def start(token_required: bool) -> Post:
            servers.append(
                build_server(
                    store, metadata_store, ServerOptions(token_required=token_required, clock=lambda: NOW)
                )
            )

            def post(**headers: str) -> httpx.Response:
                async def send() -> httpx.Response:
                    transport = httpx.ASGITransport(servers[-1])
                    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                        return await client.post(PATH, json=ENVELOPE, headers=headers)

                return anyio.run(send)

            return post

        yield start
        for server in servers:
            server.close()


def test_without_tokens_only_loopback_host_names_are_accepted(serve: Callable[[bool], Post]) -> None:
    post = serve(False)
    rejected = post(host="rebind.example:8900")
    assert rejected.status_code == 403
    assert "answers to localhost" in rejected.json()["error"]
    assert post(host="127.0.0.1:8900").json()["stored"] is True


def test_a_token_is_required(serve: Callable[[bool], Post], metadata_store: MetadataStore) -> None:
    post = serve(True)
    assert post().status_code == 401
    assert post(authorization="Bearer rvt_wrong").status_code == 401
    secret, _ = metadata_store.tokens.create("node1", NOW)
    assert post(authorization=f"Bearer {secret}", host="runs.example").json()["stored"] is True
