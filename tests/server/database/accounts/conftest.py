from __future__ import annotations

import pytest

from runvitals.server.account_store import AccountStore
from runvitals.server.metadata_store import MetadataStore


@pytest.fixture
def accounts(metadata_store: MetadataStore) -> AccountStore:
    return metadata_store.accounts
