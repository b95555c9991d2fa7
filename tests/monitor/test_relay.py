"""What a monitor hands on to the relay."""

from __future__ import annotations

import pytest

from runvitals.monitor.relay import own_variables

ENVIRON = {
    "MLFLOW_TRACKING_USERNAME": "me",
    "MLFLOWER": "tulip",
    "OTEL_EXPORTER_OTLP_HEADERS": "key=1",
    "REMOTE_WRITE_TOKEN": "t",
    "HTTP_PROXY": "http://proxy",
    "HOME": "/home/me",
}


@pytest.mark.parametrize(
    ("destinations", "names"),
    [
        (["mlflow:http://host:5000#run=0f"], ["MLFLOW_TRACKING_USERNAME"]),
        (["mlflow", "remote-write:http://vm"], ["MLFLOW_TRACKING_USERNAME", "REMOTE_WRITE_TOKEN"]),
        (["http://host:8900", "https://host"], []),
        ([], []),
    ],
)
def test_a_destinations_variables_begin_with_its_name(destinations: list[str], names: list[str]) -> None:
    assert sorted(own_variables(destinations, ENVIRON)) == names
