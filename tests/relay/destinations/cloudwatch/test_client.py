"""PutMetricData as boto3 sends it, to moto's server."""

from __future__ import annotations

import socket
import time

import pytest

from runvitals.relay.destinations.cloudwatch.client import CloudWatchClient
from runvitals.relay.destinations.cloudwatch.datum import Datum, MetricSeries
from runvitals.relay.destinations.cloudwatch.split_request import RequestRejected, ServiceUnavailable
from tests.relay.destinations.cloudwatch.conftest import FakeCloud

MINUTE_S = int(time.time()) // 60 * 60


def test_statistics_of_aggregated_samples_are_exact(cloud: FakeCloud) -> None:
    client = CloudWatchClient("Neuron", "us-west-2")
    client.put([Datum(MetricSeries("cpu", "Percent"), MINUTE_S, (10.0, 40.0), (3, 1))])
    (point,) = cloud.statistics("Neuron", "cpu", MINUTE_S, "Percent")
    statistics = {name: point[name] for name in ("SampleCount", "Sum", "Minimum", "Maximum", "Average")}
    assert statistics == {"SampleCount": 4.0, "Sum": 70.0, "Minimum": 10.0, "Maximum": 40.0, "Average": 17.5}
    client.close()


def test_sends_a_thousand_data_in_one_request(cloud: FakeCloud) -> None:
    client = CloudWatchClient("Neuron", "us-west-2")
    client.put(
        [Datum(MetricSeries(f"m{i}", "Count"), MINUTE_S, (float(i), 0.5), (1, 11)) for i in range(1000)]
    )
    (point,) = cloud.statistics("Neuron", "m999", MINUTE_S, "Count")
    assert (point["SampleCount"], point["Maximum"]) == (12.0, 999.0)
    client.close()


def test_sends_dimensions(cloud: FakeCloud) -> None:
    client = CloudWatchClient("Neuron")
    client.put([Datum(MetricSeries("cpu", dimensions=(("InstanceId", "i-1"),)), MINUTE_S, (1.0,), (1,))])
    assert cloud.dimensions("Neuron") == {(("InstanceId", "i-1"),)}
    client.close()


def test_raises_request_rejected_for_invalid_data(cloud: FakeCloud) -> None:
    client = CloudWatchClient("Neuron", "us-west-2")
    with pytest.raises(RequestRejected, match="InvalidParameterValue"):
        client.put([Datum(MetricSeries("cpu"), MINUTE_S, (float("nan"),), (1,))])
    client.close()


def test_raises_service_unavailable_without_network_or_credentials(
    cloud: FakeCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as silent:  # bound, and not listening
        silent.bind(("127.0.0.1", 0))
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        client = CloudWatchClient("Neuron", "us-west-2")
        with pytest.raises(ServiceUnavailable, match="connect"):
            client.put([Datum(MetricSeries("cpu"), MINUTE_S, (1.0,), (1,))])
        client.close()
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    client = CloudWatchClient("Neuron", "us-west-2")
    with pytest.raises(ServiceUnavailable, match="credentials"):
        client.put([Datum(MetricSeries("cpu"), MINUTE_S, (1.0,), (1,))])
    client.close()


def test_missing_region_raises(cloud: FakeCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    with pytest.raises(ValueError, match="region None: You must specify a region"):
        CloudWatchClient("Neuron")
