from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from runvitals.server.account_store import AccountStore
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.database.secret_box import SecretBox
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.sign_on.providers import stored_providers
from runvitals.server.sign_on.sign_on import SingleSignOn
from tests.server.database.conftest import address, empty, kind, metadata_store, postgresql
from tests.server.outbound.site import Site, serving
from tests.server.sign_on.provider import CLIENT, SECRET, Idp

__all__ = ["address", "empty", "kind", "metadata_store", "postgresql"]

T0 = 1_800_000_000_000
Configure = Callable[..., SingleSignOn]


class Clocks:
    """The time of day in ms, and seconds that only grow, as the test sets them."""

    def __init__(self) -> None:
        self.now_ms = T0

    def wall_ms(self) -> int:
        return self.now_ms

    def monotonic(self) -> float:
        return self.now_ms / 1000


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


@pytest.fixture
def accounts(metadata_store: MetadataStore) -> AccountStore:
    return metadata_store.accounts


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    hosts = ("idp.example", "other.example", "github.com", "api.github.com", "ghe.example")
    with serving(tmp_path, *hosts) as running:
        yield running


@pytest.fixture
def idp(site: Site) -> Idp:
    person = {
        "email": "ada@lab.example",
        "email_verified": True,
        "preferred_username": "ada",
        "name": "Ada L.",
    }
    return Idp(site, "idp.example", T0 / 1000, person)


@pytest.fixture
def with_second_factor() -> set[int]:
    """The ids of the users who have a second factor; a test may add some."""
    return set()


@pytest.fixture
def configure(
    metadata_store: MetadataStore, site: Site, clocks: Clocks, with_second_factor: set[int]
) -> Configure:
    """Sets the providers: one at `idp.example` with these values, and more."""
    box = SecretBox({"k": bytes(32)})

    def build(*more: Mapping[str, Any], **values: object) -> SingleSignOn:
        lab: dict[str, Any] = {"id": "lab", "label": "Lab", "kind": "oidc", "issuer": "https://idp.example"}
        lab |= {"client_id": CLIENT, "client_secret": SECRET} | values
        settings = metadata_store.accounts.settings
        stored = stored_providers([lab, *more], [], box)
        settings.put({"providers": stored}, CLI, T0, secret=frozenset(("providers",)))
        url = "https://runs.lab.example"
        has_second_factor = with_second_factor.__contains__
        return SingleSignOn(
            metadata_store,
            box,
            site.fetcher(),
            clocks.wall_ms,
            clocks.monotonic,
            lambda: url,
            has_second_factor,
        )

    return build
