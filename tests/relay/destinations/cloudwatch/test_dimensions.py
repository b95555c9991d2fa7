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


def test_values_and_names_to_look_up() -> None:
    assert parse(["Team=vision=2", "InstanceId"]) == {"Team": "vision=2", "InstanceId": None}


@pytest.mark.parametrize(
    ("word", "complaint"),
    [("Colour", "not one that is looked up.*write Colour=VALUE"), ("=x", "1 to 255"), (":a=x", "no colon")],
)
def test_names_that_cannot_be(word: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse([word])
    with pytest.raises(ValueError, match="given twice"):
        parse(["a=1", "a=2"])


def test_the_instance_is_asked_of_neuron_monitor_first(tmp_path: Path) -> None:
    here = DimensionLookup({"instance_id": "i-0feed"}, {"AWS_EC2_METADATA_DISABLED": "true"}, str(tmp_path))
    assert resolve({"InstanceId": None, "Team": "a"}, here.find) == (("InstanceId", "i-0feed"), ("Team", "a"))


def test_then_of_imds_version_2(metadata: str, tmp_path: Path) -> None:
    here = DimensionLookup({}, {"AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata}, str(tmp_path))
    assert here.find("InstanceId") == "i-0abc"
    with pytest.raises(LookupError, match=r"ImageId: .*answered 404.*write ImageId=VALUE"):
        here.find("ImageId")


def test_a_machine_that_is_none_of_ec2_says_so(tmp_path: Path) -> None:
    here = DimensionLookup({}, {"AWS_EC2_METADATA_DISABLED": "true"}, str(tmp_path))
    with pytest.raises(LookupError, match="InstanceId: AWS_EC2_METADATA_DISABLED is set"):
        resolve({"InstanceId": None}, here.find)


def test_a_task_of_ecs(metadata: str, tmp_path: Path) -> None:
    here = DimensionLookup({}, {"ECS_CONTAINER_METADATA_URI_V4": f"{metadata}/v4/abc"}, str(tmp_path))
    names = ("ClusterName", "ServiceName", "TaskId", "TaskDefinitionFamily")
    assert [here.find(name) for name in names] == ["vision", "faces", "f00d", "serve"]


def test_outside_of_ecs_the_error_says_what_is_missing(tmp_path: Path) -> None:
    here = DimensionLookup({}, {"CLUSTER_NAME": "mine"}, str(tmp_path))
    assert here.find("ClusterName") == "mine"
    with pytest.raises(LookupError, match="TaskId: this is no task of ECS: ECS_CONTAINER_METADATA_URI_V4"):
        here.find("TaskId")


def test_a_pod(tmp_path: Path) -> None:
    secrets = tmp_path / "var/run/secrets/kubernetes.io/serviceaccount"
    secrets.mkdir(parents=True)
    (secrets / "namespace").write_text("team-a")
    here = DimensionLookup({}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOSTNAME": "train-0"}, str(tmp_path))
    assert (here.find("PodName"), here.find("Namespace")) == ("train-0", "team-a")
