"""A server that MLflow clients use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.patience import PATIENCE_S
from tests.server.serving import Served, serving

Call = Callable[..., Any]


@pytest.fixture(scope="package")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("mlflow")) as served:
        yield served


@pytest.fixture(scope="package")
def call(served: Served) -> Iterator[Call]:
    """Calls an endpoint: its answer, or (status, error) if it fails."""
    with httpx.Client(base_url=f"{served.url}/api/2.0/mlflow/", timeout=PATIENCE_S) as client:

        def call(method: str, path: str, **sent: Any) -> Any:
            how = {"params": sent} if method == "GET" else {"json": sent}
            response = client.request(method, path, **how)
            response_body = response.json()
            return response_body if response.is_success else (response.status_code, response_body)

        yield call
