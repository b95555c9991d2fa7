from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from runvitals.relay.destinations.cloudwatch.dimensions import DimensionLookup, parse, resolve


class Metadata(BaseHTTPRequestHandler):
    """IMDSv2 and the ECS task metadata."""

    def do_PUT(self) -> None:
        assert self.path == "/latest/api/token"
        assert self.headers["X-aws-ec2-metadata-token-ttl-seconds"]
        self._answer(b"token1")

    def do_GET(self) -> None:
        if self.path == "/v4/abc/task":
            arn = "arn:aws:ecs:eu-west-1:1:cluster/vision"
            task = {"Cluster": arn, "TaskARN": "arn:aws:ecs:eu-west-1:1:task/vision/f00d", "Family": "serve"}
            self._answer(json.dumps(task | {"ServiceName": "faces"}).encode())
        elif self.headers["X-aws-ec2-metadata-token"] != "token1":
            self.send_error(401)
        elif self.path == "/latest/meta-data/instance-id":
            self._answer(b"i-0abc")
        else:
            self.send_error(404)

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def metadata() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Metadata)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_parses_values_and_names() -> None:
    assert parse(["Team=vision=2", "InstanceId"]) == {"Team": "vision=2", "InstanceId": None}


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("Colour", "needs a value: write Colour=VALUE"),
        ("=x", "1 to 255"),
        (":a=x", "not starting with a colon"),
    ],
)
def test_invalid_dimensions(word: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse([word])
    with pytest.raises(ValueError, match="duplicate dimension"):
        parse(["a=1", "a=2"])


def test_instance_from_neuron_monitor(tmp_path: Path) -> None:
    lookup = DimensionLookup({"instance_id": "i-0feed"}, {"AWS_EC2_METADATA_DISABLED": "true"}, str(tmp_path))
    assert resolve({"InstanceId": None, "Team": "a"}, lookup.find) == (
        ("InstanceId", "i-0feed"),
        ("Team", "a"),
    )


def test_instance_from_imds(metadata: str, tmp_path: Path) -> None:
    lookup = DimensionLookup({}, {"AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata}, str(tmp_path))
    assert lookup.find("InstanceId") == "i-0abc"
    with pytest.raises(LookupError, match=r"ImageId: .*HTTP status 404.*write ImageId=VALUE"):
        lookup.find("ImageId")


def test_instance_without_imds_raises(tmp_path: Path) -> None:
    lookup = DimensionLookup({}, {"AWS_EC2_METADATA_DISABLED": "true"}, str(tmp_path))
    with pytest.raises(LookupError, match="InstanceId: AWS_EC2_METADATA_DISABLED is set"):
        resolve({"InstanceId": None}, lookup.find)


def test_ecs_task(metadata: str, tmp_path: Path) -> None:
    lookup = DimensionLookup({}, {"ECS_CONTAINER_METADATA_URI_V4": f"{metadata}/v4/abc"}, str(tmp_path))
    names = ("ClusterName", "ServiceName", "TaskId", "TaskDefinitionFamily")
    assert [lookup.find(name) for name in names] == ["vision", "faces", "f00d", "serve"]


def test_ecs_task_outside_of_ecs_raises(tmp_path: Path) -> None:
    lookup = DimensionLookup({}, {"CLUSTER_NAME": "mine"}, str(tmp_path))
    assert lookup.find("ClusterName") == "mine"
    with pytest.raises(LookupError, match="TaskId: not an ECS task: ECS_CONTAINER_METADATA_URI_V4"):
        lookup.find("TaskId")


def test_kubernetes_pod(tmp_path: Path) -> None:
    secrets = tmp_path / "var/run/secrets/kubernetes.io/serviceaccount"
    secrets.mkdir(parents=True)
    (secrets / "namespace").write_text("team-a")
    lookup = DimensionLookup(
        {}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOSTNAME": "train-0"}, str(tmp_path)
    )
    assert (lookup.find("PodName"), lookup.find("Namespace")) == ("train-0", "team-a")
