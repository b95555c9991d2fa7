"""Rules that choose project, run, host, rank and device from attributes and labels."""

from __future__ import annotations

import pytest

from runvitals.journal.paths import check_run_id, check_writer
from runvitals.server.doors.routing import (
    DEFAULT_RULES,
    FIELDS,
    MAX_RULE_CHARACTERS,
    MAX_RULES,
    InvalidRules,
    NamedPlace,
    address_of,
    checked_rules,
    device,
    route_of,
    run_id,
    writer_host,
)

SERVICE = {"service.name": "train", "service.instance.id": "3", "host.name": "node1"}


@pytest.mark.parametrize(
    ("attributes", "run", "is_host_run"),
    [
        ({"runvitals.run": "r1", "slurm.job.id": "7", **SERVICE}, "r1", False),
        ({"runvitals_run": "r1", "instance": "node1:9100"}, "r1", False),
        ({"slurm.job.id": "7", **SERVICE}, "slurm-7", False),
        ({"hpc_job": "7", "Hostname": "node1", "gpu": "0"}, "slurm-7", False),
        ({"k8s.job.uid": "0a1b", "k8s.job.name": "train", **SERVICE}, "k8s-0a1b", False),
        ({"k8s.namespace.name": "ml", "k8s.job.name": "train"}, "ml-train", False),
        ({"k8s.namespace.name": "ml", "k8s.pod.name": "train-0"}, "ml-train-0", False),
        ({"exported_namespace": "ml", "exported_pod": "train-0", "pod": "dcgm-x"}, "ml-train-0", False),
        (SERVICE, "train-3", False),
        ({"service.name": "train", "process.pid": "41", "host.name": "node1"}, "train-node1-41", False),
        ({"service.name": "train", "host.name": "node1"}, "host-node1", True),
        ({"service.name": "train"}, "train", True),
        ({"instance": "10.0.0.7:9400", "job": "dcgm"}, "host-10.0.0.7", True),
        ({}, "host-unknown", True),
        ({"runvitals.run": "", "host.name": "node1"}, "host-node1", True),
    ],
)
def test_the_run(attributes: dict[str, str], run: str, is_host_run: bool) -> None:
    route = route_of(attributes)
    assert (route.run, route.is_host_run) == (run, is_host_run)


@pytest.mark.parametrize(
    ("attributes", "host"),
    [
        ({"host.name": "pod-7", "k8s.node.name": "node1"}, "node1"),
        ({"instance": "node1:9100"}, "node1"),
        ({"instance": "[fe80::1]:9100"}, "fe80::1"),
        ({"instance": "fe80::1"}, "fe80::1"),
        ({"Hostname": "gpu-a", "instance": "10.0.0.7:9400"}, "gpu-a"),
        ({"node": "node1", "instance": "10.0.0.7:9400"}, "node1"),
        ({}, "unknown"),
        ({"host.name": "x" * 1000}, "x" * 256),
    ],
)
def test_the_host(attributes: dict[str, str], host: str) -> None:
    assert route_of(attributes).host == host


def test_the_name_of_a_run() -> None:
    assert route_of({"runvitals.run": "r1"}).run_name is None
    assert route_of({"runvitals.run": "r1", "runvitals.run.name": "best"}).run_name == "best"
    assert route_of({"slurm.job.id": "7", "slurm.job.name": "train"}).run_name == "train"
    assert route_of({"runvitals.run": "a/b"}).run_name == "a/b"
    assert route_of({"instance": "node1:9100"}).run_name == "node1"


@pytest.mark.parametrize("text", ["a/b", "-x", "", "é", "x" * 1000, "a b", "..", "\ud800"])
def test_run_ids_of_other_names_are_valid_and_different(text: str) -> None:
    encoded = run_id(text)
    assert check_run_id(encoded) == encoded
    assert check_writer(f"monitor.{writer_host(text)}.19f3a")
    assert encoded != run_id(text + "?")


def test_runs_of_a_host_in_several_projects_are_different() -> None:
    attributes = {"instance": "node1:9100"}
    assert route_of(attributes, place=NamedPlace(None, "a")).run == "a.host-node1"
    assert route_of(attributes, place=NamedPlace(None, "b")).run == "b.host-node1"
    assert route_of({"runvitals.run": "r1"}, place=NamedPlace(None, "a")).run == "r1"


def test_the_project() -> None:
    attributes = {"runvitals.project": "mine", "runvitals.entity": "vision"}
    assert address_of(attributes, NamedPlace("ada", "digits")) == NamedPlace("vision", "mine")
    assert address_of({}, NamedPlace("ada", "digits")) == NamedPlace("ada", "digits")
    rules = checked_rules({"project": ["{k8s.namespace.name}"]})
    sender = NamedPlace(None, "cluster")
    assert route_of({"k8s.namespace.name": "ml", "host.name": "a"}, rules, sender).project == "ml"
    assert route_of({"host.name": "a"}, rules, sender).project == "cluster"
    assert route_of({"host.name": "a"}).project is None


@pytest.mark.parametrize(
    ("text", "rank"), [("3", 3), ("-1", None), ("x", None), ("٣", None), ("9" * 30, None), ("0", 0)]
)
def test_the_rank(text: str, rank: int | None) -> None:
    assert route_of({"rank": text}).rank == rank


@pytest.mark.parametrize(
    ("attributes", "number"),
    [
        ({"hw.id": "3"}, 3),
        ({"gpu": "0", "device": "nvidia0"}, 0),
        ({"device": "nvidia1"}, 1),
        ({"hw.id": "GPU-6f3a", "gpu": "2"}, 2),
        ({"hw.id": "0000:3b:00.0"}, None),
        ({"hw.id": "123456"}, None),
        ({}, None),
    ],
)
def test_the_device(attributes: dict[str, str], number: int | None) -> None:
    assert device(attributes) == number


def test_rules_of_a_project_replace_the_default_ones_of_a_field() -> None:
    rules = checked_rules({"run": ["{job}-{trial}", "{job}"], "device": ["{card}"]})
    assert route_of({"job": "a", "trial": "7", "runvitals.run": "x"}, rules).run == "a-7"
    assert route_of({"job": "a"}, rules).run == "a"
    assert route_of({"runvitals.run": "x", "host.name": "node1"}, rules).run == "host-node1"
    assert device({"gpu": "0", "card": "5"}, rules) == 5
    assert rules.host == DEFAULT_RULES.host
    assert checked_rules({}) == DEFAULT_RULES


@pytest.mark.parametrize(
    ("rules", "field", "problem"),
    [
        ({"runs": ["{a}"]}, "runs", "there is no field 'runs'"),
        ({"run": ["{a}"] * (MAX_RULES + 1)}, "run", "21 rules"),
        ({"run": ["{a}", ""]}, "run[1]", "0 characters"),
        ({"run": ["{" + "x" * MAX_RULE_CHARACTERS + "}"]}, "run[0]", "258 characters"),
        ({"host": ["{a}-{b"]}, "host[0]", "followed by a name"),
        ({"host": ["{}"]}, "host[0]", "followed by a name"),
        ({"host": ["a}"]}, "host[0]", "followed by a name"),
        ({"rank": ["7"]}, "rank[0]", "names no attribute"),
    ],
)
def test_wrong_rules_name_the_field(rules: dict[str, list[str]], field: str, problem: str) -> None:
    with pytest.raises(InvalidRules) as raised:
        checked_rules(rules)
    assert problem in raised.value.fields[field]


def test_the_attributes_of_rules_are_known_by_both_names() -> None:
    assert {"service.name", "k8s.job.name"} - DEFAULT_RULES.attributes == {"service.name"}
    assert {"k8s_job_name", "instance", "Hostname"} <= DEFAULT_RULES.attributes
    assert set(FIELDS) == {"project", "run", "run_name", "host", "rank", "device"}
