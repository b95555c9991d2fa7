"""What a team keeps is in its bucket, from whichever client it comes, and nothing else is there."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import mlflow
import pytest
from PIL import Image

import runvitals
from runvitals.cli import main
from runvitals.server.audit.storage.audit import CLI
from runvitals.store.files.bucket_location import BucketLocation
from runvitals.store.files.buckets import open_store
from tests.buckets.azure_service import ACCOUNT, ACCOUNT_KEY, CONTAINER, azurite
from tests.buckets.s3_service import ACCESS_KEY, SECRET_KEY, ObjectService, allowing
from tests.patience import PATIENCE_S
from tests.server.accounts_server import AccountsServer, accounts_server

WANDB_CLIENT = Path(__file__).with_name("wandb_client.py")


class Labs:
    """A server with the team labs, which has a bucket, and the key of its administrator."""

    def __init__(self, server: AccountsServer, bucket: dict[str, Any], s3: ObjectService | None) -> None:
        self.server, self.s3 = server, s3
        user = server.user("olga", org_role="admin")
        server.accounts.settings.put(allowing(bucket["endpoint"]), CLI, server.clock())
        server.ask("olga", "POST", "organisation/buckets", 201, json={"name": "cold", **bucket})
        server.ask("olga", "POST", "teams", 201, json={"name": "labs", "bucket": "cold"})
        self.key, _ = server.accounts.keys.create("for tests", CLI, server.clock(), user_id=user.id)
        self.team_id = server.accounts.teams.by_name("labs").id
        self.store = open_store(BucketLocation(**bucket).below(str(self.team_id)))

    def in_bucket(self) -> set[str]:
        return {content.sha256 for content in self.store.contents()}

    def signed_reads(self) -> int:
        """How often clients have read objects of S3 at signed addresses."""
        return 0 if self.s3 is None else self.s3.signed_reads


@pytest.fixture(scope="module", params=["s3", "azure"])
def labs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Labs]:
    with ExitStack() as stack:
        folder = tmp_path_factory.mktemp("server")
        server = stack.enter_context(accounts_server(folder))
        s3 = None
        if request.param == "s3":
            s3 = ObjectService()
            stack.callback(s3.close)
            secret = {"access_key_id": ACCESS_KEY, "secret_access_key": SECRET_KEY}
            bucket = {"provider": "s3", "bucket": s3.bucket, "endpoint": s3.url, "region": "eu-central-1"}
        else:
            secret = {"account_key": ACCOUNT_KEY}
            endpoint = stack.enter_context(azurite())
            bucket = {"provider": "azure", "bucket": CONTAINER, "endpoint": endpoint, "account": ACCOUNT}
        yield Labs(server, {**bucket, "prefix": "training/", "secret": secret}, s3)


@pytest.fixture(autouse=True)
def everything_is_in_the_bucket(labs: Labs, tmp_path: Path) -> Iterator[None]:
    """After each test, the bucket has exactly the files of the team, and the server none."""
    yield
    files = labs.server.app.services.files
    assert files is not None
    objects, _ = labs.server.accounts.buckets.use(labs.team_id)
    assert objects == len(labs.in_bucket()) > 0
    assert [path for path in Path(files._folder, "contents").rglob("*") if path.is_file()] == []


def test_our_client(labs: Labs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RUNVITALS_SERVER", labs.server.url)
    monkeypatch.setenv("RUNVITALS_TOKEN", labs.key)
    monkeypatch.setenv("RUNVITALS_DIR", str(tmp_path / "data"))
    large = os.urandom(9 << 20)  # more than a part
    with runvitals.init(entity="labs", project="ours", id="ours", mode="offline") as run:
        artifact = runvitals.Artifact("mixed", "dataset")
        for name, content in (("large.bin", large), ("small/a", b"a"), ("small/b", b"b")):
            with artifact.new_file(name, "wb") as file:
                file.write(content)
        run.log_artifact(artifact)
        run.log({"page": runvitals.Html("<p>ours</p>")})
        Path("saved.txt").write_text("saved")
        run.save("saved.txt")
    assert main(["sync", "ours", "--to", labs.server.url]) == 0
    assert len(labs.in_bucket()) >= 5
    before = labs.signed_reads()
    assert main(["artifact", "get", "labs/ours/mixed", "-o", "out"]) == 0
    assert Path("out/large.bin").read_bytes() == large
    if labs.s3 is not None:
        assert labs.signed_reads() == before + 4  # two parts, and two small files
    (bucket,) = labs.server.ask("olga", "GET", "organisation/buckets")["buckets"]
    path = f"organisation/buckets/{bucket['id']}"
    labs.server.ask("olga", "PATCH", path, json={"direct": False})
    assert main(["artifact", "get", "labs/ours/mixed", "-o", "through the server"]) == 0
    assert main(["artifact", "verify", "labs/ours/mixed", "through the server"]) == 0
    labs.server.ask("olga", "PATCH", path, json={"direct": True})


def test_mlflows_client(labs: Labs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", labs.server.url)
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", labs.key)
    before = labs.in_bucket()
    client = mlflow.MlflowClient(labs.server.url)
    experiment = client.create_experiment("labs/cars")
    run = client.create_run(experiment)
    (tmp_path / "logged.txt").write_text("logged by mlflow")
    client.log_artifact(run.info.run_id, str(tmp_path / "logged.txt"))
    assert len(labs.in_bucket() - before) == 1
    reads = labs.signed_reads()
    back = client.download_artifacts(run.info.run_id, "logged.txt", str(tmp_path))
    assert Path(back).read_text() == "logged by mlflow"
    if labs.s3 is not None:
        assert labs.signed_reads() > reads


def test_an_image_of_a_report(labs: Labs) -> None:
    project = labs.server.accounts.owned_projects.create(labs.team_id, "reported", CLI, labs.server.clock())
    new = {"title": "With an image"}
    path = f"entities/labs/projects/{project.name}/reports"
    report = labs.server.ask("olga", "POST", path, 201, json=new)
    before, picture = labs.in_bucket(), io.BytesIO()
    Image.new("RGB", (20, 10), "red").save(picture, "PNG")
    stored = labs.server.ask(
        "olga",
        "POST",
        f"reports/{report['id']}/files",
        201,
        content=picture.getvalue(),
        headers={"content-type": "image/png"},
    )
    assert len(labs.in_bucket() - before) == 1
    with labs.server.client("olga") as olga:
        answer = olga.get(f"reports/{report['id']}/files/{stored['file']}")
    assert Image.open(io.BytesIO(answer.content)).size == (20, 10)


def test_wandbs_client(labs: Labs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if labs.s3 is None:
        return  # it is slow to start, and knows no buckets
    for name, value in (
        ("AWS_ACCESS_KEY_ID", ACCESS_KEY),
        ("AWS_SECRET_ACCESS_KEY", SECRET_KEY),
        ("AWS_S3_ENDPOINT_URL", labs.s3.url),  # for wandb
        ("AWS_ENDPOINT_URL", labs.s3.url),
        ("AWS_DEFAULT_REGION", "eu-central-1"),
        ("RUNVITALS_SERVER", labs.server.url),
        ("RUNVITALS_TOKEN", labs.key),
    ):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(labs.s3, "true_tags", True)
    for key, content in (("raw/a.txt", b"a"), ("raw/sub/b.txt", b"bb")):
        labs.s3.put(key, content)
    before, reads = labs.in_bucket(), labs.signed_reads()
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("WANDB_")},
        **{f"WANDB_{name}": str(tmp_path / name) for name in ("CACHE_DIR", "DATA_DIR", "CONFIG_DIR", "DIR")},
        "WANDB_BASE_URL": labs.server.url,
        "WANDB_API_KEY": labs.key,
        "WANDB_ERROR_REPORTING": "false",
        "WANDB_SILENT": "true",
    }
    (tmp_path / "DIR").mkdir()
    done = subprocess.run(
        [sys.executable, str(WANDB_CLIENT), str(tmp_path / "out"), f"s3://{labs.s3.bucket}/raw"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=5 * PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:] + done.stdout[-1000:]
    assert len(labs.in_bucket() - before) >= 3
    assert labs.signed_reads() > reads
    ours = str(tmp_path / "ours")
    assert main(["artifact", "get", "labs/wandb/weights", "-o", ours]) == 0
    assert main(["artifact", "verify", "labs/wandb/weights", ours]) == 0
    assert Path(ours, "raw", "sub", "b.txt").read_text() == "bb"
