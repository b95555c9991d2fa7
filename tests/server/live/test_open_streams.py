"""A client has a limited number of event streams; others are not affected."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from runvitals.server.audit.storage.audit import CLI
from tests.patience import PATIENCE_S, eventually
from tests.server.access.organisation import NOW, TEAM, ServedOrganisation, served_organisation

RUN = f"runs/team-ci/live?entity={TEAM}"
RUNS = f"overlay/live?runs=team-ci&entity={TEAM}"


def client(served: ServedOrganisation, name: str) -> httpx.Client:
    headers = {"authorization": f"Bearer {served.keys[name]}"}
    return httpx.Client(base_url=f"{served.served.url}/api/v1/", headers=headers, timeout=PATIENCE_S)


def status(client: httpx.Client) -> int:
    with client.stream("GET", RUN) as response:
        return response.status_code


@pytest.mark.parametrize("second", [RUN, RUNS])
def test_an_account_has_as_many_streams_as_it_may_have(tmp_path: Path, second: str) -> None:
    with served_organisation(tmp_path) as served, ExitStack() as stack:
        served.served.app.services.open_streams.most = 2
        bob, carol = (stack.enter_context(client(served, name)) for name in ("bob", "carol"))
        stack.enter_context(bob.stream("GET", RUN))
        opened = stack.enter_context(bob.stream("GET", second))
        assert opened.status_code == 200
        refused = bob.get(RUN)
        assert refused.status_code == 429
        assert refused.json() == {"error": "2 event streams are open already: close some, or try again later"}
        assert refused.headers["retry-after"] == "30"
        assert status(carol) == 200
        opened.close()
        eventually(lambda: status(bob) == 200)


def test_a_stream_of_several_runs_tells_nothing_of_those_that_may_no_longer_be_read(tmp_path: Path) -> None:
    with served_organisation(tmp_path) as served, client(served, "carol") as carol:
        runs = {"team-bob": "team", "public-bob": "public"}
        query = f"runs=team-bob&runs=public-bob&entity={TEAM}"

        def change(number: int) -> None:
            for run, project in runs.items():
                sent = {"run": run, "writer": "train", "project": project, "entity": TEAM, "seq": number}
                values = {"keys": ["loss"], "t": [NOW + number], "v": [[0.5]]}
                assert served.ask("bob", "POST", "/api/v1/ingest", json={**sent, **values}).status_code == 200

        with carol.stream("GET", f"overlay/live?{query}") as response:
            events = (line for line in response.iter_lines() if line)
            assert next(events).startswith("retry")
            served.accounts.members.remove(TEAM, "carol", CLI, NOW)
            served.rights_changed()
            for number in range(1, 20):
                change(number)
                if any(line == 'data: {"runs": ["public-bob"]}' for line in (next(events), next(events))):
                    break
            else:
                raise AssertionError("the run of the team is told of still")
