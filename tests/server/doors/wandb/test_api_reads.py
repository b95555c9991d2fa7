"""`wandb.Api()` of the installed client, and what its requests may read."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from runvitals.server.audit.storage.audit import CLI
from runvitals.server.doors.wandb import history_reads
from tests.patience import PATIENCE_S
from tests.server.accounts_server import T0, AccountsServer, accounts_server

ROWS = 120
START = T0 - 60_000
STEPS = list(range(ROWS))
LOSS = {run: [1 / (step + run + 3) for step in STEPS] for run in range(4)}
FILES = ("a model.pt", "logs/été #1.txt", "wandb-metadata.json")


def _sha256(name: str) -> str:
    return hashlib.sha256(f"content of {name}".encode()).hexdigest()


SAVED = [
    {
        "t": START + place,
        "key": name,
        "kind": "file",
        "items": [
            {"sha256": _sha256(name), "bytes": len(f"content of {name}".encode()), "type": "text/plain"}
        ],
    }
    for place, name in enumerate(FILES)
]
ACC = [None if step % 10 else step / 3 for step in STEPS]


class Lab:
    """The team vision of ada with the project digits, the key of ada, and that of bob, who is in no team."""

    def __init__(self, server: AccountsServer) -> None:
        self.server = server
        accounts = server.accounts
        ada, bob = server.user("ada", org_role="admin"), server.user("bob")
        accounts.teams.create("vision", CLI, T0, administrator=ada.id)
        self.key = accounts.keys.create("k", CLI, T0, user_id=ada.id, scope="full")[0]
        self.reader = accounts.keys.create("r", CLI, T0, user_id=ada.id, scope="read")[0]
        self.stranger = accounts.keys.create("k", CLI, T0, user_id=bob.id, scope="full")[0]
        server.app.services.access.rights_changed()
        for number in range(4):
            self._send(number)

    def _send(self, number: int) -> None:
        run = {"entity": "vision", "project": "digits", "run": f"run{number}", "seq": 1}
        about = {"t": START, "run": {"name": f"net-{number}", "tags": ["base" if number else "old"]}}
        config = {"lr": 0.1 * number, "opt": {"name": "adam"}}
        trained = {
            "writer": "train.node1.1",
            "about": {"role": "train", "host": "node1", "pid": 1, "interval_s": 3600, "started_ms": START},
            "keys": ["loss", "acc"],
            "t": [START + 100 * step for step in STEPS],
            "v": [LOSS[number], ACC],
            "step": STEPS,
            "records": [
                [0, "info", {**about, "config": config, "machine": {"git": {"commit": "c0ffee"}}}],
                *[[10 + index, "media", record] for index, record in enumerate(SAVED)],
                [1, "console", {"t": START, "stream": 1, "text": "hello\nwor"}],
                [2, "console", {"t": START + 5, "stream": 1, "text": "ld\n"}],
            ],
        }
        measured = {
            "writer": "monitor.node1.1",
            "about": {"role": "monitor", "host": "node1", "interval_s": 3600, "started_ms": START},
            "keys": ["cpu", "gpu.0.temp", "network.sent"],
            "t": [START, START + 1000],
            "v": [[12.5, 1 / 3], [40, None], [100, 300]],
        }
        for envelope in (trained, measured):
            url = f"{self.server.url}/api/v1/ingest"
            headers = {"authorization": f"Bearer {self.key}"}
            response = httpx.post(url, json={**run, **envelope}, headers=headers, timeout=PATIENCE_S)
            assert response.status_code == 200, response.text
            if envelope is trained:
                self._send_files(f"run{number}", headers)

    def _send_files(self, run: str, headers: dict[str, str]) -> None:
        for name in FILES:
            content, sha256 = f"content of {name}".encode(), _sha256(name)
            url = f"{self.server.url}/api/v1/runs/{run}/files/{sha256}"
            params: dict[str, Any] = {"offset": 0, "size": len(content), "entity": "vision"}
            sent = httpx.put(url, params=params, content=content, headers=headers, timeout=PATIENCE_S)
            assert sent.status_code == 200, sent.text

    def graphql(self, query: str, key: str | None = None, **variables: Any) -> Any:
        """The response to an operation, which is never a 5xx."""
        body, auth = {"query": query, "variables": variables}, ("api", key or self.key)
        url = f"{self.server.url}/graphql"
        response = httpx.post(url, json=body, auth=auth, timeout=PATIENCE_S)
        assert response.status_code < 500, response.text
        return response.json()

    def run_field(self, field: str, key: str | None = None, **variables: Any) -> Any:
        """A field of run0, with declared variables: `$s: String`."""
        declared = "".join(f"${name}: {kind}, " for name, (kind, _) in variables.items())
        head = f"query Q({declared.rstrip(', ')})" if declared else "query Q"
        query = head + '{project(name:"digits",entityName:"vision"){run(name:"run0"){' + field + "}}}"
        response = self.graphql(query, key, **{name: value for name, (_, value) in variables.items()})
        if "errors" in response:
            return response["errors"][0]["message"]
        return response["data"]["project"] and response["data"]["project"]["run"]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with accounts_server(tmp_path_factory.mktemp("wandb-api")) as server:
        yield Lab(server)


@pytest.fixture(scope="module")
def read(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the client read and changed."""
    pytest.importorskip("wandb")
    folder = tmp_path_factory.mktemp("client")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WANDB_")}
    environment |= {"WANDB_BASE_URL": lab.server.url, "WANDB_API_KEY": lab.key, "HOME": str(folder)}
    result = folder / "result.json"
    command = [sys.executable, str(Path(__file__).with_name("api_client.py")), "vision/digits", str(result)]
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stderr[-3000:]
    output: dict[str, Any] = json.loads(result.read_text())
    return output


def test_who_and_where(read: dict[str, Any]) -> None:
    assert read["viewer"] == ["ada", "ada", ["ada", "vision"]]
    assert read["projects"] == ["digits"]
    assert read["project"][0] == "digits"
    assert read["users"] == ["ada"]
    assert read["members"] == [["ada", True]]


def test_runs_are_listed_filtered_and_paged(read: dict[str, Any]) -> None:
    assert read["count"] == 4
    assert [run[0] for run in read["runs"]] == ["run0", "run1", "run2", "run3"]
    assert read["runs"][1] == ["run1", "net-1", "running", ["base"], "2027-01-15T07:59:00.000Z", ""]
    assert read["configs"][2] == {"lr": 0.2, "opt": {"name": "adam"}}
    assert read["filtered"] == ["run3", "run2", "run0"]
    assert read["eager"] == [LOSS[run][-1] for run in range(4)]


def test_errors_are_shown_by_the_client(read: dict[str, Any]) -> None:
    assert "unknown operator '$where'" in read["bad filter"]
    assert "Could not find project nothing" in read["no project"]
    assert "Could not find run" in read["no run"]
    assert "Could not find" in read["sweep"]
    assert read["sweeps"] == [True]


def test_history_is_equal_to_the_last_bit(read: dict[str, Any]) -> None:
    assert read["run"] == ["run1", "running", "ada", "c0ffee", False, ROWS - 1]
    assert [row["loss"] for row in read["scan"]] == LOSS[1]
    assert [row["_step"] for row in read["scan"]] == STEPS
    assert [row["_timestamp"] for row in read["scan"]] == [(START + 100 * step) / 1000 for step in STEPS]
    assert [row["_runtime"] for row in read["scan"]] == [100 * step / 1000 for step in STEPS]
    assert [row.get("acc") for row in read["scan"]] == ACC
    assert read["scan of steps"] == [3, 4, 5, 6]
    assert [row["acc"] for row in read["scan of keys"]] == [value for value in ACC if value is not None]


def test_history_is_not_downloaded_as_files_that_would_be_out_of_date(read: dict[str, Any]) -> None:
    assert read["scan again"] == [True] * 4
    assert read["no exports"].startswith("IncompleteRunHistoryError")
    assert read["exports"] == [[], True, {}]


def test_sampled_history_is_evenly_spaced(read: dict[str, Any]) -> None:
    assert [row["_step"] for row in read["sampled"]] == [0, 30, 60, 89, 119]
    assert read["keys"] == [
        {"_step": step, "loss": LOSS[1][step], "acc": ACC[step]} for step in (0, 40, 70, 110)
    ]


def test_system_metrics_have_the_names_of_wandb(read: dict[str, Any]) -> None:
    common = {"_wandb": True, "system.network.sent": 100.0}
    assert read["events"] == [
        {"_timestamp": START / 1000, "_runtime": 0, "system.cpu": 12.5, "system.gpu.0.temp": 40, **common},
        {
            "_timestamp": START / 1000 + 1,
            "_runtime": 1,
            "system.cpu": 1 / 3,
            **common,
            "system.network.sent": 300.0,
        },
    ]
    assert read["system"]["system.cpu"] == 1 / 3
    assert read["output"] == [[0, "hello", ""], [1, "world", ""]]


def test_files_are_listed_and_downloaded(read: dict[str, Any]) -> None:
    assert [name for name, _, _ in read["files"]] == sorted(FILES)
    assert read["files"][0] == ["a model.pt", len("content of a model.pt"), "text/plain"]
    assert read["some files"] == ["logs/été #1.txt"]
    assert read["downloaded"] == "content of logs/été #1.txt"
    refused, left = read["deleted file"]
    assert "the run has no file 'a model.pt'" in refused
    assert left == sorted(FILES)[1:]


def test_files_are_deleted_by_who_may_change_their_runs(lab: Lab) -> None:
    deletion = "mutation Delete($files: [ID!]!) { deleteFiles(input: {files: $files}) { success } }"
    shown = "files { edges { node { id } } }"
    ids = [edge["node"]["id"] for edge in lab.run_field(shown)["files"]["edges"]]
    unknown = base64.b64encode(b"SavedFile:999999:a").decode()

    def refusal(key: str, *files: str) -> str:
        return str(lab.graphql(deletion, key, files=files)["errors"][0]["message"])

    assert "may" in refusal(lab.reader, ids[0])
    assert "no run" in refusal(lab.stranger, ids[0])
    assert "no run" in refusal(lab.key, ids[0], unknown)
    for wrong in ("", "x", unknown[:-4], base64.b64encode("SavedFile:²:a".encode()).decode()):
        assert "expected that of type File" in refusal(lab.key, wrong)
    assert len(lab.run_field(shown)["files"]["edges"]) == len(ids)


def test_a_file_needs_a_key_that_may_read_its_run(lab: Lab) -> None:
    node = lab.run_field("files { edges { node { name url } } }")["files"]["edges"][0]["node"]
    for key, status in ((lab.key, 200), (lab.reader, 200), (lab.stranger, 404), ("x" * 40, 401)):
        response = httpx.get(node["url"], auth=("api", key), timeout=PATIENCE_S)
        assert response.status_code == status
    assert httpx.get(node["url"], timeout=PATIENCE_S).status_code in (401, 404)
    missing = node["url"].replace(node["url"].rsplit("/", 1)[1], "..%2f..%2fcatalogue.db")
    assert httpx.get(missing, auth=("api", lab.key), timeout=PATIENCE_S).status_code == 404


def test_changes_are_those_of_our_own_pages(lab: Lab, read: dict[str, Any]) -> None:
    config = {"lr": 0.1, "opt": {"name": "adam"}, "extra": {"a": [1, 2]}}
    assert read["updated"] == [config, ["new", "base"], "changed", "renamed", 0.5]
    run = lab.server.ask("ada", "GET", "runs/run1")
    assert (run["name"], run["notes"], run["config"]) == ("renamed", "changed", config)
    assert run["summary"] == {"loss": LOSS[1][-1], "acc": 110 / 3, "best": 0.5}
    assert lab.server.ask("ada", "GET", "runs/run2")["stop_requested_ms"] is not None
    assert read["left"] == ["run0", "run1", "run2"]
    assert read["created"] == "2027-01-15T08:00:00.000Z"
    actions = lab.server.actions(run="run3")
    assert "run.delete" in actions
    assert "run.update" in lab.server.actions(run="run1")


def test_there_are_no_reports(read: dict[str, Any]) -> None:
    assert read["reports"] == [[], []]
    assert "Project nothing does not exist" in read["no reports"]


def test_a_run_is_marked_as_failed(lab: Lab, read: dict[str, Any]) -> None:
    assert read["failed"] == [True, "failed"]
    assert "invalid state 'pending'; expected 'failed'" in read["pending"]
    assert "run 'run2' is failed; only a running or lost run can be marked" in read["failed twice"]
    assert lab.server.ask("ada", "GET", "runs/run2")["state"] == "failed"
    assert "run.update" in lab.server.actions(run="run2")


def test_a_key_reads_only_what_its_owner_may(lab: Lab) -> None:
    assert lab.run_field("id", key=lab.stranger) is None
    models = '{models(entityName:"vision"){edges{node{name}}}}'
    assert lab.graphql(models, key=lab.stranger)["data"]["models"]["edges"] == []
    nobody = httpx.post(
        f"{lab.server.url}/graphql", json={"query": models}, auth=("api", "x" * 40), timeout=PATIENCE_S
    )
    assert nobody.status_code == 401


def test_a_key_changes_only_what_it_may(lab: Lab) -> None:
    run_id = lab.run_field("id")["id"]
    for mutation in (
        "mutation($id: ID!){deleteRun(input:{id:$id}){success}}",
        "mutation($id: ID!){stopRun(input:{id:$id}){success}}",
        'mutation($id: ID!){updateRunState(input:{id:$id,state:"failed"}){success}}',
    ):
        refused = lab.graphql(mutation, key=lab.reader, id=run_id)
        assert refused["errors"][0]["extensions"]["code"] == 403
        hidden = lab.graphql(mutation, key=lab.stranger, id=run_id)
        assert hidden["errors"][0]["extensions"]["code"] == 404
    update = 'mutation($id: String!){upsertBucket(input:{id:$id,notes:"x"}){bucket{id}}}'
    assert lab.graphql(update, key=lab.reader, id=run_id)["errors"][0]["extensions"]["code"] == 403
    assert lab.graphql(update, key=lab.stranger, id=run_id)["errors"][0]["extensions"]["code"] == 404
    assert lab.graphql(update, id="UnVuOng=")["errors"][0]["extensions"]["code"] == 422
    create = 'mutation($e: String){upsertModel(input:{name:"mine",entityName:$e}){inserted}}'
    refused = [lab.graphql(create, key=lab.stranger, e=name)["errors"][0] for name in ("vision", "nobody")]
    assert [response["extensions"]["code"] for response in refused] == [404, 404]
    assert refused[0]["message"].replace("vision", "nobody") == refused[1]["message"]


def test_beginning_and_resuming_a_run_tell_nothing_of_hidden_teams(lab: Lab) -> None:
    begin = (
        'mutation($e: String){upsertBucket(input:{name:"run0",entityName:$e,modelName:"digits"}){inserted}}'
    )
    resume = (
        'query($e: String){model(name:"digits",entityName:$e){id bucket(name:"run0",missingOk:true){id}}}'
    )
    for operation in (begin, resume):
        responses = [lab.graphql(operation, key=lab.stranger, e=name) for name in ("vision", "nobody")]
        assert json.dumps(responses[0]).replace("vision", "nobody") == json.dumps(responses[1])
    assert lab.graphql(resume, key=lab.key, e="vision")["data"]["model"]["bucket"] is not None


def test_lines_of_a_run_that_a_key_may_not_know_are_refused_as_of_no_run(lab: Lab) -> None:
    responses = []
    for path in ("vision/digits/run0", "vision/digits/none", "nobody/digits/run0"):
        url = f"{lab.server.url}/files/{path}/file_stream"
        response = httpx.post(url, json={}, auth=("api", lab.stranger), timeout=PATIENCE_S)
        entity, _, run = path.split("/")
        responses.append((response.status_code, response.text.replace(entity, "E").replace(run, "R")))
    assert responses[0][0] == 404
    assert responses[0] == responses[1] == responses[2]


@pytest.mark.parametrize(
    ("field", "variables", "message"),
    [
        ("sampledHistory(specs: $s)", {"s": ("[JSONString!]!", ["{"])}, "invalid spec"),
        ("sampledHistory(specs: $s)", {"s": ("[JSONString!]!", [5])}, "JSON in a text"),
        ("sampledHistory(specs: $s)", {"s": ("[JSONString!]!", ["{}"] * 21)}, "at most 20"),
        ("sampledHistory(specs: $s)", {"s": ("[JSONString!]!", ['{"keys":["a"],"samples":"x"}'])}, "numbers"),
        ("history(minStep: $s)", {"s": ("Int64", "x")}, "integers of 64 bits"),
        ("history(minStep: $s)", {"s": ("Int64", 10**30)}, "integers of 64 bits"),
        ("history(minStep: $s)", {"s": ("Int64", True)}, "integers of 64 bits"),
        ("logLines(after: $s) {edges {cursor}}", {"s": ("String", "²")}, "invalid after"),
    ],
)
def test_invalid_arguments_are_errors_of_the_client(
    lab: Lab, field: str, variables: dict[str, tuple[str, Any]], message: str
) -> None:
    assert message in lab.run_field(field, **variables)


def test_hostile_filters_and_cursors_are_errors_of_the_client(lab: Lab) -> None:
    query = """query($f: JSONString, $o: String, $a: String) {
        project(name: "digits", entityName: "vision") {
            runs(filters: $f, order: $o, after: $a, first: -5) { edges { cursor } } } }"""
    for variables in (
        {"f": 5},
        {"f": "[" * 9000},
        {"f": '{"name": {"$regex": "(a*)*["}}'},
        {"o": "-password"},
        {"a": "x"},
        {"a": "bm9wZQ"},
    ):
        assert lab.graphql(query, **variables)["errors"][0]["extensions"]["code"] == 422
    negative = 'query{project(name:"digits",entityName:"vision"){run(name:"run0"){history(samples:-1)}}}'
    assert lab.graphql(negative)["data"]["project"]["run"]["history"] == []


def test_a_small_query_cannot_read_everything_many_times(lab: Lab) -> None:
    inner = "id"
    for _ in range(5):
        runs = "runs(first:1000){edges{node{" + inner + "}}}"
        inner = "project{" + f"a:{runs} b:{runs}" + "}"
    response = lab.run_field(inner)
    assert "the query asks for too much" in response


def test_a_refused_query_is_worked_on_no_longer(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    library = lab.server.app.services.library
    opened = []
    open_run = library.open

    async def counted(*args: Any) -> Any:
        opened.append(args)
        return await open_run(*args)

    monkeypatch.setattr(library, "open", counted)
    histories = " ".join(f"a{number}: historyKeys" for number in range(3001))
    assert "the query asks for too much" in lab.run_field(histories)
    assert len(opened) < 10


def test_of_a_long_run_the_last_value_of_each_interval_is_read(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_reads, "MAX_VALUES", 3)
    rows = [json.loads(line) for line in lab.run_field("events(samples: 2)")["events"]]
    assert len(rows) <= 2
    assert (rows[-1]["system.cpu"], rows[-1]["system.network.sent"]) == (1 / 3, 300.0)
