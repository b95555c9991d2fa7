"""A server with the team `vision`, an artifact in it, and what its people do with registries."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from runvitals.server.files.storage.stored_files import StoredFile
from tests.server.access.organisation import NOW, TEAM, ServedOrganisation, served_organisation
from tests.server.database.artifacts.making import logged, md5

REGISTRIES = f"/api/v1/teams/{TEAM}/registries"


class Registries:
    """Requests about the registries of `vision`."""

    def __init__(self, served: ServedOrganisation) -> None:
        self.served = served
        self.store = served.metadata_store

    def ask(self, who: str, method: str, path: str = "", **how: Any) -> httpx.Response:
        """A request about a path below the registries of the team."""
        return self.served.ask(who, method, f"{REGISTRIES}{path}", **how)

    def ok(self, who: str, method: str, path: str = "", **how: Any) -> Any:
        """The same, which must succeed; returns the JSON."""
        response = self.ask(who, method, path, **how)
        assert response.status_code < 300, (response.status_code, response.text)
        return response.json() if response.content else None

    def log(self, project: str, name: str, files: dict[str, bytes], **more: Any) -> int:
        """Log a version of an artifact; returns its number."""
        project_id = self.store.projects.id(project)
        for content in files.values():
            self._keep(project_id, content)
        version = logged(self.store, project_id, files, name, type="model", **more)
        assert version.version is not None
        return version.version

    def _keep(self, project_id: int, content: bytes) -> None:
        received = self.served.served.app.services.files
        path = received.begin(len(content))
        Path(path).write_bytes(content)
        contents = self.store.artifacts.contents

        def note(file: StoredFile) -> None:
            contents.add(project_id, md5(content), file, NOW)

        received.keep(path, hashlib.sha256(content).hexdigest(), len(content), note, 0)
        received.end(path)


@pytest.fixture(scope="module")
def registries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registries]:
    with served_organisation(tmp_path_factory.mktemp("registries")) as served:
        registries = Registries(served)
        run = served.metadata_store.runs.find("team-bob", NOW)
        assert run is not None
        for number in range(3):
            files = {
                "model.bin": b"model %d" % number,
                "README.md": b"# Card %d\n<script>x</script>" % number,
            }
            registries.log("team", "weights", files, run_id=run.id)
        registries.log("restricted", "secret", {"model.bin": b"secret weights"})
        yield registries
