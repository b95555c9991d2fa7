"""The OpenAPI document, and every operation of it with valid and invalid parameters."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance
from starlette.types import Receive, Scope, Send

from runvitals.server.account_routes import ACCOUNT_ROUTERS
from runvitals.server.app import application
from runvitals.server.build import ServerOptions, build_server
from runvitals.server.local_app import local_services
from runvitals.server.metadata_store import open_metadata_store
from runvitals.store.samples.sqlite import SqliteChunks
from tests.patience import PATIENCE_S
from tests.readers.journals.journals import T0, Training
from tests.server.access.test_before_accounts import FOR_RUNS
from tests.server.client import Client
from tests.server.stored_runs import StoredServer

EXAMPLES = 3
"""For each call that a server without accounts has too; one for others. What was found with thousands is
mended. `test_openapi_roles` sends requests to all operations, in many roles, of a server with accounts."""
CHECKS = [not_a_server_error, status_code_conformance, response_schema_conformance]


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The document, and the application behind it, with a run named `0` in it."""
    folder = tmp_path_factory.mktemp("server")
    training = Training(folder, "0", gpus=1)
    training.advance(5)
    filled = StoredServer(folder)
    filled.take(folder, "0")
    filled.close()
    store, metadata_store = (
        SqliteChunks(str(folder / "store")),
        open_metadata_store(str(folder / "catalogue.db")),
    )
    app = build_server(store, metadata_store, ServerOptions(clock=lambda: T0 + 10_000))
    app.closing.set()  # event streams end after what there is

    async def on_loopback(scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(name, value) for name, value in scope["headers"] if name != b"host"]
        await app({**scope, "headers": [*headers, (b"host", b"localhost")]}, receive, send)

    loaded = schemathesis.openapi.from_asgi("/api/v1/openapi.json", on_loopback, timeout=PATIENCE_S)
    loaded.config.generation.update(modes=[GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
    yield loaded
    app.close()
    metadata_store.close()
    store.close()


def operations(schema: Any) -> list[Any]:
    """Calls that are answered before the first administrator exists, that which takes the run away last."""
    results = [result.ok() for result in schema.get_all_operations()]
    results = [operation for operation in results if operation.path.startswith(FOR_RUNS)]
    return sorted(results, key=lambda operation: bool(operation.method == "delete"))


def test_every_operation_responds_as_described(schema: Any, client: Client) -> None:
    found = operations(schema)
    without_accounts = client.ask("openapi.json")["paths"].keys()
    assert len({operation.path for operation in found} & without_accounts) >= 18
    for operation in found:
        cases = operation.as_strategy(GenerationMode.POSITIVE) | operation.as_strategy(
            GenerationMode.NEGATIVE
        )

        @seed(1)
        @settings(
            max_examples=EXAMPLES if operation.path in without_accounts else 1,
            deadline=None,
            database=None,
            phases=[Phase.explicit, Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=cases, known=st.booleans())
        def answered(case: Any, known: bool) -> None:
            if known and "run" in (case.path_parameters or {}):
                case.path_parameters["run"] = "0"
            case.call_and_validate(checks=CHECKS)

        answered()


def test_the_document_describes_every_response(client: Client) -> None:
    described = client.ask("openapi.json")
    contents = {
        f"{method} {path}": operation["responses"]["200"]["content"]
        for path, operations in described["paths"].items()
        for method, operation in operations.items()
    }
    others = {
        "runs/{run}/live": "text/event-stream",
        "overlay/live": "text/event-stream",
        "runs.csv": "text/csv",
        "runs/{run}/files/{sha256}": "application/octet-stream",
        "runs/{run}/files/{sha256}/page": "application/octet-stream",
    }
    for path, media_type in others.items():
        assert contents.pop(f"get /api/v1/{path}").keys() == {media_type}
    assert len(contents) >= 18
    for call, content in contents.items():
        schema = content["application/json"]["schema"]
        assert "$ref" in json.dumps(schema) or schema["items"] == {"type": "string"}, call


def test_only_calls_that_name_something_list_404(client: Client) -> None:
    listing = {
        path
        for path, operations in client.ask("openapi.json")["paths"].items()
        for operation in operations.values()
        if "404" in operation["responses"]
    }
    assert listing
    assert all("{" in path for path in listing)


def test_schemas_have_plain_names(tmp_path: Path) -> None:
    document = Client(tmp_path).ask("openapi.json")
    names = set(document["components"]["schemas"])
    shown = {"Event", "Latest", "NewRow", "NewSample", "Project", "Rank", "RunPage", "RunRow", "Statistics"}
    assert shown <= names
    assert not [name for name in names if name.endswith("Schema")]
    used = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(document)))
    assert used <= names
    assert document["components"]["schemas"]["Event"]["title"] == "Event"


def test_no_schema_is_named_after_its_module(tmp_path: Path) -> None:
    """FastAPI does so for two classes of one name, which makes long names in generated clients."""
    library = Client(tmp_path).app.state.services.library
    document = application(local_services(library), routers=ACCOUNT_ROUTERS).openapi()
    assert [name for name in document["components"]["schemas"] if "__" in name] == []
