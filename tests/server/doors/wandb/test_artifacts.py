"""Artifacts of an unmodified wandb client: what it logs, and what it gets back."""

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

from runvitals.server.audit.storage.audit import CLI, AuditFilter
from tests.patience import PATIENCE_S
from tests.server.artifacts.test_lineage import named
from tests.server.serving import Served, serving

CLIENT = Path(__file__).with_name("artifact_client.py")
T0 = 1_760_000_000_000
_BEGIN = """mutation CreateArtifact($input: CreateArtifactInput!) {
  createArtifact(input: $input) { artifact { id state } } }"""
_FILES = """mutation CreateArtifactFiles($files: [CreateArtifactFileSpecInput!]!) {
  createArtifactFiles(input: {artifactFiles: $files, storageLayout: V2}) {
    files { edges { node { uploadUrl } } } } }"""
_MANIFEST = """mutation CreateArtifactManifest($id: ID!, $digest: String!) {
  createArtifactManifest(input: {name: "wandb_manifest.json", digest: $digest, artifactID: $id,
      entityName: "ada", projectName: "letters", runName: "r"}) {
    artifactManifest { id file { uploadUrl directUrl } } } }"""
_COMMIT = """mutation CommitArtifact($id: ID!) {
  commitArtifact(input: {artifactID: $id}) { artifact { id digest } } }"""
_ADDRESSES = """query Files($name: String!) { project(entityName: "vision", name: "cars") {
    artifactCollectionMembership(name: $name) { files(first: 5) { edges { node { name directUrl } } } } } }"""
_READ_MANIFEST = "query M($id: ID!) { artifact(id: $id) { currentManifest { file { directUrl } } } }"
_NAMES = _ADDRESSES.replace(" directUrl", "")


class Owners:
    """A server with accounts, and the keys of its users."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.keys: dict[str, str] = {}
        accounts = served.metadata_store.accounts
        for name in ("ada", "member", "viewer", "stranger"):
            role = "admin" if name == "ada" else "member"
            user = accounts.users.create(
                name, CLI, T0, address=f"{name}@example.org", verified=True, org_role=role
            )
            self.keys[name], _ = accounts.keys.create(f"{name}'s", CLI, T0, user_id=user.id)
        served.app.services.access.rights_changed()

    def graphql(self, query: str, who: str = "ada", **variables: Any) -> Any:
        body = {"query": query, "variables": variables}
        auth = ("api", self.keys[who])
        return httpx.post(f"{self.served.url}/graphql", json=body, auth=auth, timeout=PATIENCE_S).json()

    def begin(self, files: dict[str, bytes], name: str, who: str = "ada", place: str = "ada/letters") -> str:
        """A draft with this content, without any file; its id."""
        digests = {path: digest(content) for path, content in files.items()}
        lines = "".join(f"{path}:{digests[path]}\n" for path in sorted(digests))
        entity, project = place.split("/")
        new: dict[str, Any] = {"entityName": entity, "projectName": project}
        new |= {"artifactCollectionNames": [name], "digestAlgorithm": "MANIFEST_MD5"}
        new["artifactTypeName"] = "dataset"
        new["digest"] = hashlib.md5(f"wandb-artifact-manifest-v1\n{lines}".encode()).hexdigest()
        response = self.graphql(_BEGIN, who, input=new)
        assert "errors" not in response, response
        number: str = response["data"]["createArtifact"]["artifact"]["id"]
        return number

    def address(self, id: str, path: str, content: bytes, who: str = "ada") -> str | None:
        """Where to send a file of a draft."""
        specs = [{"artifactID": id, "name": path, "md5": digest(content)}]
        response = self.graphql(_FILES, who, files=specs)
        assert "errors" not in response, response
        url: str | None = response["data"]["createArtifactFiles"]["files"]["edges"][0]["node"]["uploadUrl"]
        return url

    def send_manifest(self, id: str, contents: dict[str, Any], who: str = "ada") -> httpx.Response:
        body = json.dumps({"version": 1, "contents": contents}).encode()
        response = self.graphql(_MANIFEST, who, id=id, digest=digest(body))
        address = response["data"]["createArtifactManifest"]["artifactManifest"]["file"]["uploadUrl"]
        return httpx.put(address, content=body, timeout=PATIENCE_S)


def digest(content: bytes) -> str:
    return base64.b64encode(hashlib.md5(content).digest()).decode()


def error_of(body: Any) -> str:
    return str(body["errors"][0]["message"])


@pytest.fixture(scope="module")
def owners(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Owners]:
    with serving(tmp_path_factory.mktemp("artifacts")) as served:
        yield Owners(served)


@pytest.fixture(scope="module")
def seen(owners: Owners, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the client saw: one process for all tests, because the client is slow to start."""
    folder = tmp_path_factory.mktemp("client")
    own = {
        name: str(folder / name.lower()) for name in ("CACHE_DIR", "DATA_DIR", "CONFIG_DIR", "ARTIFACT_DIR")
    }
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("WANDB_")},
        **{f"WANDB_{name}": value for name, value in own.items()},
        "WANDB_BASE_URL": owners.served.url,
        "WANDB_API_KEY": owners.keys["ada"],
        "WANDB_DIR": str(folder),
        "WANDB_ERROR_REPORTING": "false",
        "WANDB_SILENT": "true",
    }
    done = subprocess.run(
        [sys.executable, str(CLIENT), str(folder)],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=5 * PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:] + done.stdout[-1000:]
    line = next(line for line in done.stdout.splitlines() if line.startswith("RESULT "))
    return json.loads(line.removeprefix("RESULT ")) | {"folder": str(folder)}


def test_the_client_links_to_a_registry_and_reads_from_it(owners: Owners, seen: Any) -> None:
    path = "ada/wandb-registry-model/digits"
    assert seen["use"]["registry"] == [
        [f"{path}:v0", True, f"{path}:production"],
        ["v0", ["latest", "production"], "ada/digits/weights:v0"],
        {"model.txt": "weights"},
    ]
    assert seen["use"]["linked model"] == "net:v0"
    organization = 'query O { organization(name: "ada") { name orgEntity { name } } }'
    assert owners.graphql(organization)["data"]["organization"]["orgEntity"] == {"name": "ada"}
    assert owners.graphql(organization, "stranger")["data"]["organization"] is None


_REGISTRIES = """query R($filters: JSONString) { organization(name: "ada") { orgEntity { entityType
    projects(filters: $filters) { edges { node { name access } } pageInfo { hasNextPage } }
    artifactMemberships { edges { node { versionIndex } } } } } }"""


def test_the_client_lists_registries_with_their_collections_and_versions(owners: Owners, seen: Any) -> None:
    registry = ["model", "wandb-registry-model", "ada", "ada"]
    assert seen["read"]["registries"] == {
        "registry": registry,
        "shown": ["organization", ["model"], True],
        "named": True,
        "others": [],
        "collections": [["best models", "model", []], ["digits", "model", ["prod"]]],
        "tagged": ["digits"],
        "count": 1,  # `link_model()` links to the same registry
        "versions": [["ada/wandb-registry-model/digits:v0", ["latest", "production"], "weights:v0"]],
        "new ones": [],
        "of collections": ["digits:v0", "best models:v0"],
    }
    organisation = owners.graphql(_REGISTRIES)["data"]["organization"]["orgEntity"]
    assert [edge["node"]["name"] for edge in organisation["projects"]["edges"]] == ["wandb-registry-model"]
    assert owners.graphql(_REGISTRIES, "stranger")["data"]["organization"] is None
    refused = owners.graphql(_REGISTRIES, filters='{"owner": "ada"}')
    assert "unknown field 'owner'; expected one of created_at, description" in error_of(refused)


def test_the_client_logs_versions(seen: Any) -> None:
    assert seen["log"] == {
        "first": ["v0", "COMMITTED", ["best", "latest"], 6, 2],
        "again": ["v0", ["reviewed"]],
        "second": ["v1", ["latest"]],
        "third": ["v2", ["c.txt", "d/b.txt"]],
        "fourth": ["v3", ["c.txt", "d/b.txt", "e.txt"]],
    }


def test_the_client_uses_and_downloads_versions(seen: Any) -> None:
    used = seen["use"]
    assert used["best"] == {"a.txt": "one", "d/b.txt": "two"}
    assert used["metadata"] == [{"rows": 2}, "the first"]
    assert used["latest"] == {"c.txt": "three", "d/b.txt": "two", "e.txt": "five"}
    assert used["single"] == "one"
    assert used["references"]["bucket.bin"] == "s3://bucket/key"
    assert used["references"]["far.txt"] == f"file://{seen['folder']}/far.txt"
    assert used["outside"] == {"far.txt": "far away", "of_mnist.txt": "three"}


def test_the_client_reads_and_changes_versions(seen: Any) -> None:
    read = seen["read"]
    assert read["changed"] == ["v0", ["kept"], {"rows": 2, "acc": 0.5}, "changed", ["tag one"]]
    assert (read["types"], read["collections"]) == (["dataset", "model"], ["mnist", "outside"])
    assert read["some collections"] == [["outside", "mnist"], ["outside"], 1]
    assert (read["versions"], read["exists"]) == (["v3", "v2", "v1", "v0"], [True, False])
    assert read["files"] == [["a.txt", 3], ["d/b.txt", 3]]
    assert read["linked"] == ["best datasets:v0", ["gold", "latest"], "mnist:v0", True]
    assert read["collection"] == ["digits, written by hand", ["shown"], ["kept", "latest"]]


def test_the_client_sees_the_lineage(owners: Owners, seen: Any) -> None:
    read = seen["read"]
    assert (read["made_by"], read["used_by"]) == ("maker", ["user"])
    assert read["logged"] == ["mnist:v0", "mnist:v1", "mnist:v2", "mnist:v3", "outside:v0"]
    assert read["used"] == ["mnist:v0", "mnist:v3", "outside:v0", "weights:v0"]
    auth = {"authorization": f"Bearer {owners.keys['ada']}"}
    url = f"{owners.served.url}/api/v1/runs/user/lineage?depth=2"
    graph = httpx.get(url, headers=auth, timeout=PATIENCE_S).json()
    assert {"maker": -2, "mnist:v0": -1}.items() <= named(graph).items()


def test_the_client_deletes_versions_and_collections(owners: Owners, seen: Any) -> None:
    read = seen["read"]
    assert (
        "cannot be deleted: it is linked as ada/digits/best datasets:v0 (gold, latest): unlink it there"
        in (read["errors"][0])
    )
    assert "'mnist:v99' not found" in read["errors"][1]
    assert "'none:latest' not found" in read["errors"][2]
    assert read["after_delete"] == "v2"
    assert read["left"] == ["best datasets", "mnist"]
    audit = owners.served.metadata_store.accounts.audit
    events = audit.page(AuditFilter(action="artifact.delete"), 100)
    deletions = [(event.actor_name, event.before) for event in events]
    assert [deletion for deletion in deletions if "deleted:" not in str(deletion)] == [
        ("ada", {"artifact": "outside"}),
        ("ada", {"artifact": "mnist:v3"}),
    ]


def made(owners: Owners, name: str) -> str:
    """An artifact with a file; its id."""
    content = name.encode()
    id = owners.begin({"a.txt": content}, name)
    address = owners.address(id, "a.txt", content)
    if address is not None:
        assert httpx.put(address, content=content, timeout=PATIENCE_S).status_code == 200
    sent = owners.send_manifest(id, {"a.txt": {"digest": digest(content), "size": len(content)}})
    assert sent.status_code == 200, sent.text
    assert "errors" not in owners.graphql(_COMMIT, id=id)
    return id


@pytest.fixture(scope="module", autouse=True)
def project(owners: Owners) -> None:
    create = {"name": "letters"}
    auth = {"authorization": f"Bearer {owners.keys['ada']}"}
    url = f"{owners.served.url}/api/v1/entities/ada/projects"
    assert httpx.post(url, json=create, headers=auth, timeout=PATIENCE_S).status_code in (200, 201)


def test_an_address_allows_one_thing_for_some_time(owners: Owners) -> None:
    id = owners.begin({"a.txt": b"content"}, "signed")
    address = owners.address(id, "a.txt", b"content")
    assert address is not None
    wrong = httpx.put(address, content=b"other", timeout=PATIENCE_S)
    assert (wrong.status_code, "MD5" in wrong.text) == (400, True)
    assert httpx.put(address + "x", content=b"content", timeout=PATIENCE_S).status_code == 403
    assert httpx.get(address, timeout=PATIENCE_S).status_code == 403
    head, _, token = address.partition("token=")
    signature = token.partition(".")[2]
    claim = b'[9999999999999,["operator",0,null],{"project_id":7,"digest":"x"}]'
    forged = base64.urlsafe_b64encode(claim).decode().rstrip("=")
    assert httpx.put(f"{head}token={forged}.{signature}", content=b"", timeout=PATIENCE_S).status_code == 403
    assert httpx.put(address, content=b"content", timeout=PATIENCE_S).status_code == 200
    assert owners.address(id, "a.txt", b"content") is None


@pytest.mark.parametrize("path", ["../a", "/etc/passwd", "a\nb"])
def test_hostile_paths_are_refused(owners: Owners, path: str) -> None:
    id = owners.begin({"a.txt": b"x"}, "hostile")
    specs = [{"artifactID": id, "name": path, "md5": digest(b"x")}]
    assert "invalid path" in error_of(owners.graphql(_FILES, files=specs))
    refused = owners.send_manifest(id, {path: {"digest": digest(b"x"), "size": 1}})
    assert (refused.status_code, "invalid path" in refused.text) == (400, True)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'{"contents":{"a":1}}', b'{"version":2,"contents":{}}', b"\xff"]
)
def test_a_body_that_is_no_manifest_is_refused(owners: Owners, body: bytes) -> None:
    id = owners.begin({"a.txt": b"x"}, "broken")
    response = owners.graphql(_MANIFEST, id=id, digest=digest(body))
    address = response["data"]["createArtifactManifest"]["artifactManifest"]["file"]["uploadUrl"]
    refused = httpx.put(address, content=body, timeout=PATIENCE_S)
    assert (refused.status_code, "manifest" in refused.text) == (400, True)


def test_a_version_without_its_files_is_not_committed(owners: Owners) -> None:
    id = owners.begin({"a.txt": b"lacking"}, "lacking")
    assert owners.send_manifest(id, {"a.txt": {"digest": digest(b"lacking"), "size": 7}}).status_code == 200
    assert "the content of 'a.txt' was not uploaded" in error_of(owners.graphql(_COMMIT, id=id))


@pytest.mark.parametrize(
    ("size", "path", "why"),
    [
        (1 << 60, "a", "invalid size 1152921504606846976"),
        (4, "a", "the size of 'a' is 3 bytes, not 4"),
        (3, "../a", "expected a relative path without"),
    ],
)
def test_nothing_of_a_refused_manifest_is_committed(owners: Owners, size: int, path: str, why: str) -> None:
    id = owners.begin({}, "refused")
    address = owners.address(id, "a", b"abc")
    if address is not None:
        assert httpx.put(address, content=b"abc", timeout=PATIENCE_S).status_code == 200
    refused = owners.send_manifest(id, {path: {"digest": digest(b"abc"), "size": size}})
    assert (refused.status_code, why in refused.text) == (400, True), refused.text
    assert "was refused" in error_of(owners.graphql(_COMMIT, id=id))


def test_strangers_learn_nothing(owners: Owners) -> None:
    id = made(owners, "private")
    query = "query A($id: ID!) { artifact(id: $id) { digest } }"
    assert owners.graphql(query, "ada", id=id)["data"]["artifact"] is not None
    assert owners.graphql(query, "stranger", id=id)["data"]["artifact"] is None
    delete = """mutation D($id: ID!) {
      deleteArtifact(input: {artifactID: $id, deleteAliases: true}) { artifact { id } } }"""
    assert "there is no" in error_of(owners.graphql(delete, "stranger", id=id))
    specs = [{"artifactID": id, "name": "a", "md5": digest(b"")}]
    assert "there is no" in error_of(owners.graphql(_FILES, "stranger", files=specs))
    url = f"{owners.served.url}/artifactsV2/default/ada/letters/private/x/{'0' * 32}/a.txt"
    assert httpx.get(url, auth=("api", owners.keys["stranger"]), timeout=PATIENCE_S).status_code == 404
    assert httpx.get(url, timeout=PATIENCE_S).status_code == 401


def test_a_single_file_is_found_by_its_digest(owners: Owners) -> None:
    """By the addresses that clients make themselves: those up to 0.22 name no project."""
    id = made(owners, "single")
    hexadecimal = hashlib.md5(b"single").hexdigest()
    for rest in (f"ada/letters/single/{id}/{hexadecimal}/a.txt", f"ada/{id}/{hexadecimal}"):
        url = f"{owners.served.url}/artifactsV2/default/{rest}"
        auth = ("api", owners.keys["ada"])
        response = httpx.get(url, auth=auth, timeout=PATIENCE_S, follow_redirects=True)
        assert (response.status_code, response.content) == (200, b"single")
        for who, status in (("stranger", 404), (None, 401)):
            other = None if who is None else ("api", owners.keys[who])
            assert httpx.get(url, auth=other, timeout=PATIENCE_S).status_code == status
        lacking = url.replace(hexadecimal, "0" * 32)
        assert httpx.get(lacking, auth=auth, timeout=PATIENCE_S).status_code == 404


def test_who_only_views_a_project_sees_names_of_files_and_downloads_none(owners: Owners) -> None:
    accounts = owners.served.metadata_store.accounts
    ada = accounts.users.by_name("ada")
    accounts.teams.create("vision", CLI, T0, administrator=ada.id)
    for name, role in (("member", "member"), ("viewer", "viewer")):
        accounts.members.add("vision", name, role, CLI, T0)
    owners.served.app.services.access.rights_changed()
    auth = {"authorization": f"Bearer {owners.keys['ada']}"}
    url = f"{owners.served.url}/api/v1/entities/vision/projects"
    httpx.post(url, json={"name": "cars"}, headers=auth, timeout=PATIENCE_S).raise_for_status()
    id = owners.begin({"a.txt": b"a"}, "cars", "member", "vision/cars")
    address = owners.address(id, "a.txt", b"a", "member")
    assert address is not None
    httpx.put(address, content=b"a", timeout=PATIENCE_S).raise_for_status()
    owners.send_manifest(id, {"a.txt": {"digest": digest(b"a"), "size": 1}}, "member").raise_for_status()
    assert "errors" not in owners.graphql(_COMMIT, "member", id=id)

    shown = owners.graphql(_NAMES, "viewer", name="cars:latest")
    edges = shown["data"]["project"]["artifactCollectionMembership"]["files"]["edges"]
    assert edges == [{"node": {"name": "a.txt"}}]
    assert "artifact:download" in error_of(owners.graphql(_ADDRESSES, "viewer", name="cars:latest"))
    manifest = owners.graphql(_READ_MANIFEST, "member", id=id)["data"]["artifact"]["currentManifest"]
    reading = manifest["file"]["directUrl"]
    assert httpx.get(reading, timeout=PATIENCE_S).json()["contents"].keys() == {"a.txt"}
    addresses = owners.graphql(_ADDRESSES, "member", name="cars:latest")
    node = addresses["data"]["project"]["artifactCollectionMembership"]["files"]["edges"][0]["node"]
    assert httpx.get(node["directUrl"], timeout=PATIENCE_S).content == b"a"
    ranged = httpx.get(node["directUrl"], headers={"range": "bytes=1-"}, timeout=PATIENCE_S)
    assert ranged.status_code == 416
    alias = {"entityName": "vision", "projectName": "cars", "artifactCollectionName": "cars", "alias": "x"}
    add = "mutation A($input: AddAliasesInput!) { addAliases(input: $input) { success } }"
    change = {"artifactID": id, "aliases": [alias]}
    assert "artifact:alias" in error_of(owners.graphql(add, "viewer", input=change))
    assert owners.graphql(add, "member", input=change)["data"]["addAliases"] == {"success": True}
    draft = owners.begin({"b.txt": b"b"}, "cars", "member", "vision/cars")
    sending = owners.address(draft, "b.txt", b"b", "member")
    assert sending is not None

    accounts.members.remove("vision", "member", CLI, T0)
    owners.served.app.services.access.rights_changed()
    for address in (node["directUrl"], reading):
        assert httpx.get(address, timeout=PATIENCE_S).status_code in (403, 404)
    assert httpx.put(sending, content=b"b", timeout=PATIENCE_S).status_code in (403, 404)


def test_the_addresses_of_a_version_that_was_deleted_or_is_a_draft_lead_nowhere(owners: Owners) -> None:
    body = json.dumps({"version": 1, "contents": {}}).encode()
    draft = owners.begin({}, "drafted")
    response = owners.graphql(_MANIFEST, id=draft, digest=digest(body))["data"]
    of_draft = response["createArtifactManifest"]["artifactManifest"]["file"]["directUrl"]
    found = httpx.get(of_draft, timeout=PATIENCE_S)
    assert (found.status_code, "not complete" in found.text) == (404, True)

    id = made(owners, "deleted")
    address = owners.graphql(_READ_MANIFEST, id=id)["data"]["artifact"]["currentManifest"]["file"][
        "directUrl"
    ]
    assert httpx.get(address, timeout=PATIENCE_S).status_code == 200
    delete = """mutation D($id: ID!) {
      deleteArtifact(input: {artifactID: $id, deleteAliases: true}) { artifact { id } } }"""
    assert "errors" not in owners.graphql(delete, id=id)
    found = httpx.get(address, timeout=PATIENCE_S)
    assert (found.status_code, "deleted" in found.text) == (404, True)


def test_what_a_run_that_does_not_exist_uses_is_answered_with_its_name(owners: Owners) -> None:
    use = """mutation U($id: ID!) { useArtifact(input: {artifactID: $id, entityName: "ada",
      projectName: "letters", runName: "nowhere"}) { artifact { id } } }"""
    assert error_of(owners.graphql(use, id=made(owners, "used"))) == "there is no run 'nowhere'"


def test_an_artifact_to_link_that_does_not_exist_is_named(owners: Owners) -> None:
    link = """mutation L { linkArtifact(input: {clientID: "mine", entityName: "ada", projectName: "letters",
      artifactPortfolioName: "best", aliases: []}) { versionIndex } }"""
    assert error_of(owners.graphql(link)) == "there is no artifact 'mine'"


_VERSIONS = """query V($filters: JSONString, $order: String) { project(entityName: "ada", name: "letters") {
  artifactCollection(name: "filtered") { artifacts(filters: $filters, order: $order) { totalCount } } } }"""


def test_what_versions_cannot_be_filtered_or_sorted_by_is_named(owners: Owners) -> None:
    made(owners, "filtered")
    for filters, count in (
        ('{"state": "COMMITTED"}', 1),
        ('{"state": {"$ne": "COMMITTED"}}', 0),
        ('{"tags": "x"}', 0),
        ('{"versionIndex": 0, "createdAt": {"$gt": "2020-01-01"}}', 1),
    ):
        collection = owners.graphql(_VERSIONS, filters=filters, order="+createdAt")
        assert collection["data"]["project"]["artifactCollection"]["artifacts"] == {"totalCount": count}
    assert "expected one of alias" in error_of(owners.graphql(_VERSIONS, filters='{"size": 3}'))
    assert "'-size'" in error_of(owners.graphql(_VERSIONS, order="-size"))
    assert "JSON" in error_of(owners.graphql(_VERSIONS, filters="{"))


def test_the_lists_of_a_query_are_limited(owners: Owners) -> None:
    lists = " ".join(f"a{number}: artifactTypes {{ edges {{ cursor }} }}" for number in range(801))
    query = f"""{{ project(entityName: "ada", name: "letters") {{ {lists} }} }}"""
    assert "asks for too much" in error_of(owners.graphql(query))
