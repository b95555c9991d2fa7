"""MLflow's REST interface: certificates, numbers, and answers that are not MLflow's."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.relay.destination import Rejected, Retry
from runvitals.relay.destinations.mlflow import naming
from runvitals.relay.destinations.mlflow.rest_store import RestStore, number, tls
from runvitals.relay.destinations.mlflow.tracking_store import MetricPoint, NamedText
from tests.relay.destinations.mlflow.tracking import Tracking


@pytest.fixture
def tracking() -> Iterator[Tracking]:
    tracking = Tracking()
    yield tracking
    tracking.close()


@pytest.fixture
def store(tracking: Tracking) -> Iterator[RestStore]:
    rest_store = RestStore(tracking.url, {})
    yield rest_store
    rest_store.close()


def test_certificate_verification_can_be_disabled() -> None:
    assert tls({}).verify_mode == ssl.CERT_REQUIRED
    assert tls({}).check_hostname
    for word in ("true", "1", "True"):
        assert tls({"MLFLOW_TRACKING_INSECURE_TLS": word}).verify_mode == ssl.CERT_NONE


@pytest.mark.parametrize("variable", ["MLFLOW_TRACKING_SERVER_CERT_PATH", "MLFLOW_TRACKING_CLIENT_CERT_PATH"])
def test_missing_certificate_raises(variable: str, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        tls({variable: str(tmp_path / "none.pem")})


def test_certificate_authorities_from_a_folder(tmp_path: Path) -> None:
    assert not tls({"MLFLOW_TRACKING_SERVER_CERT_PATH": str(tmp_path)}).get_ca_certs()


@pytest.mark.parametrize(
    ("value", "sent"), [(1.5, 1.5), (float("nan"), "NaN"), (float("inf"), "Infinity"), (-1e400, "-Infinity")]
)
def test_number_encoding(value: float, sent: object) -> None:
    assert number(value) == sent


def test_retries_after_a_response_that_is_not_from_mlflow(tracking: Tracking, store: RestStore) -> None:
    tracking.faults.append((404, ""))
    with pytest.raises(Retry, match="<html>away</html>"):
        store.log("0f", [MetricPoint("loss", 1.0, 0, 0)])


def test_deleted_experiment_is_rejected(tracking: Tracking, store: RestStore) -> None:
    tracking.deleted = {"old"}
    with pytest.raises(Rejected, match="RESOURCE_ALREADY_EXISTS"):
        store.experiment("old")


def test_finds_an_experiment_created_concurrently(tracking: Tracking, store: RestStore) -> None:
    tracking.hidden = {"new"}
    assert store.experiment("new") == store.experiment("new") == "1"


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("train/loss", "train/loss"),
        ("gpu 0: temp.°C", "gpu 0: temp._C"),
        ("/abs//x/", "abs/x"),
        ("../../up", "up"),
        ("", "_"),
        ("é" * 300, "é" * 250),
    ],
)
def test_metric_names(name: str, taken: str) -> None:
    assert naming.metric_name(name) == taken
    assert naming.is_metric_name(name) == (name == taken)


def test_parameters_are_flattened() -> None:
    config = {"a": {"b": {"c": True}, "empty": {}}, "long": "x" * 7000, "none": None}
    assert list(naming.params(config)) == [
        NamedText("a.b.c", "True"),
        NamedText("a.empty", "{}"),
        NamedText("long", "x" * 6000),
        NamedText("none", "None"),
    ]
