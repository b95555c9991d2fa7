from __future__ import annotations

import pytest

from runvitals.store.metadata import MetadataStore
from runvitals.store.metadata.accounts.account_store import AccountStore


@pytest.fixture
def accounts(metadata_store: MetadataStore) -> AccountStore:
    return metadata_store.accounts
