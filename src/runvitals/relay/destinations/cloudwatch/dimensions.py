"""Dimensions: they distinguish the metrics of a fleet, and each distinct value is billed.

Users write `NAME=VALUE`, or one of the names below alone. Only those names are looked up: in the output of
neuron-monitor or the journal, in the environment and the firmware, and last in the metadata services of EC2
(IMDSv2) and ECS, with a time limit of one second each.
"""

from __future__ import annotations

import json
import os
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from runvitals.monitoring.collectors.base import Scope
from runvitals.monitoring.environment.container import cloud, container
from runvitals.relay.batch import Batch
from runvitals.relay.destinations.cloudwatch import limits
from runvitals.relay.destinations.cloudwatch.datum import Dimensions

TIMEOUT_S = 1.0
_IMDS = "http://169.254.169.254"

# The path in IMDS, and the key in neuron-monitor's instance_info.
_INSTANCE = {
    "InstanceId": ("instance-id", "instance_id"),
    "InstanceType": ("instance-type", "instance_type"),
    "ImageId": ("ami-id", "ami_id"),
    "AvailabilityZone": ("placement/availability-zone", "instance_availability_zone"),
}
_POD = {"PodName": "pod", "Namespace": "namespace"}
_TASK = ("ClusterName", "ServiceName", "TaskId", "TaskDefinitionFamily")
_RUN = ("Run", "RunName", "Project", "Group", "JobType", "Tags", "Rank")

# From a process's NEURON_PROCESS_TAG; not looked up, because it differs between readings.
RUNTIME_TAG = "RuntimeTag"

KNOWN = (*_INSTANCE, *_TASK, *_POD, "NodeName", "Host", *_RUN, RUNTIME_TAG)
"""The dimensions that can be looked up."""

PER_MACHINE = frozenset({"InstanceId", "TaskId", "PodName", "NodeName", "Host", "Run", "Rank", RUNTIME_TAG})
"""Dimensions that differ between machines: with one of them, N machines have N sets of metrics."""


def parse(words: Sequence[str]) -> dict[str, str | None]:
    """Parse `NAME=VALUE` and `NAME` to a mapping; None for values to be looked up.

    Raises:
        ValueError: a name alone that cannot be looked up, a duplicate name, or one that CloudWatch rejects.

    Example:
        >>> parse(["Team=vision", "InstanceId"])
        {'Team': 'vision', 'InstanceId': None}
    """
    dimensions: dict[str, str | None] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if name in dimensions:
            raise ValueError(f"duplicate dimension {name!r}")
        if not equals and name not in KNOWN and not name.startswith("label."):
            known_names = ", ".join(KNOWN)
            raise ValueError(
                f"dimension {name!r} needs a value: write {name}=VALUE; "
                f"only {known_names} and label.KEY are looked up"
            )
        dimensions[name] = value if equals else None
    limits.check_dimensions(tuple((name, value or "looked up") for name, value in dimensions.items()))
    return dimensions


class DimensionLookup:
    """Looks up dimensions in the environment of this process.

    Args:
        instance: neuron-monitor's `instance_info`, if there is one.
        environ: the environment's variables.
        host_root: the folder that holds the host's /proc and /sys.
    """

    def __init__(
        self,
        instance: Mapping[str, str] | None = None,
        environ: Mapping[str, str] | None = None,
        host_root: str = "",
    ) -> None:
        self._instance = instance or {}
        self._environ = os.environ if environ is None else environ
        self._scope = Scope(host_root=host_root)

    def find(self, name: str) -> str:
        """Return the value of one of the known names.

        Raises:
            LookupError: it is not available here; the text says what was tried, and what to do.
        """
        if name in _INSTANCE:
            value = self._of_instance(name)
        elif name in _POD:
            value = self._pod.get(_POD[name], "") or self._environ.get(_variable(name), "")
        elif name == "ClusterName" and not self._task_address:
            value = self._environ.get(_variable(name), "")
        elif name in _TASK:
            value = self._of_task(name)
        elif name == "Host":
            value = socket.gethostname()
        else:
            value = self._environ.get(_variable(name), "")
        if not value:
            raise LookupError(f"{name}: {self._why_not(name)}; write {name}=VALUE, or leave it out")
        return value

    def _why_not(self, name: str) -> str:
        if name in _TASK and name != "ClusterName":
            if not self._task_address:
                return "not an ECS task: ECS_CONTAINER_METADATA_URI_V4 is not set"
            return "missing in the ECS metadata of this task"
        if name in _RUN or name.startswith("label."):
            return "not set for this run"
        return f"could not be determined, and {_variable(name)} is not set"

    def _of_instance(self, name: str) -> str:
        path, key = _INSTANCE[name]
        firmware = cloud(self._scope) if name in ("InstanceId", "InstanceType") else {}
        return self._instance.get(key) or firmware.get(key) or self._imds(name, path)

    def _imds(self, name: str, path: str) -> str:
        """Return a value of EC2's instance metadata service, version 2."""
        base = (self._environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT") or _IMDS).rstrip("/")
        if self._environ.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
            raise LookupError(f"{name}: AWS_EC2_METADATA_DISABLED is set; write {name}=VALUE")
        try:
            token = _fetch(
                f"{base}/latest/api/token", "PUT", {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
            ).decode("ascii")
            value = _fetch(f"{base}/latest/meta-data/{path}", "GET", {"X-aws-ec2-metadata-token": token})
            return value.decode("ascii").strip()
        except (OSError, ValueError) as error:
            raise LookupError(
                f"{name}: could not be read from the instance metadata service {base} ({error}); in a "
                f"container it may need a hop limit of 2; write {name}=VALUE, or leave it out"
            ) from None

    @property
    def _task_address(self) -> str:
        return self._environ.get("ECS_CONTAINER_METADATA_URI_V4", "")

    @cached_property
    def _task(self) -> dict[str, Any]:
        """The report of the ECS metadata service about this process's task."""
        address = f"{self._task_address.rstrip('/')}/task"
        try:
            task = json.loads(_fetch(address, "GET", {}))
        except (OSError, ValueError) as error:
            raise LookupError(f"could not read the ECS metadata at {address}: {error}") from None
        return task if isinstance(task, dict) else {}

    def _of_task(self, name: str) -> str:
        if not self._task_address:
            return ""
        key = {"ClusterName": "Cluster", "TaskId": "TaskARN", "TaskDefinitionFamily": "Family"}.get(
            name, name
        )
        # A task is always an ARN, a cluster sometimes: the name follows the last slash.
        return str(self._task.get(key) or "").rpartition("/")[2]

    @cached_property
    def _pod(self) -> dict[str, str]:
        pod = container(self._scope, self._environ)
        return pod if pod.get("kind") == "kubernetes" else {}


def _variable(name: str) -> str:
    """Return `CLUSTER_NAME` for `ClusterName`."""
    return "".join(f"_{char}" if char.isupper() and i else char for i, char in enumerate(name)).upper()


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        """Return None: redirects are not followed."""


def _fetch(address: str, method: str, headers: Mapping[str, str]) -> bytes:
    if not address.startswith(("http://", "https://")):
        raise ValueError(f"not an HTTP URL: {address}")
    request = urllib.request.Request(address, headers=dict(headers), method=method)
    # Metadata services are local: requests to them must bypass proxies, and the headers must not follow
    # redirects.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect())
    try:
        with opener.open(request, timeout=TIMEOUT_S) as response:
            content: bytes = response.read(1 << 20)
            return content
    except urllib.error.HTTPError as error:
        with error:
            raise OSError(f"HTTP status {error.code}") from None


def of_run(batch: Batch) -> dict[str, str]:
    """Return the dimensions that the journal of a run provides."""
    run, writer = batch.run, batch.writer
    values = {
        "Run": run.id,
        "RunName": run.name,
        "Project": run.project,
        "Group": run.run.get("group"),
        "JobType": run.run.get("job_type"),
        "Tags": ",".join(run.tags),
        "Host": writer.host,
        "Rank": writer.rank,
    }
    texts = {name: str(value) for name, value in values.items() if value not in (None, "")}
    return texts | {f"label.{key}": value for key, value in writer.labels.items()}


def resolve(dimensions: Mapping[str, str | None], find: Callable[[str], str]) -> Dimensions:
    """Return the resolved dimensions.

    Raises:
        LookupError: one is not available. Without it, the data of several machines would be mixed in one
            metric, so nothing is sent.
    """
    pairs = [
        (name, limits.valid_name(find(name) if value is None else value, limits.DIMENSION_VALUE_LENGTH))
        for name, value in dimensions.items()
        if name != RUNTIME_TAG
    ]
    return limits.check_dimensions(tuple(pairs))
