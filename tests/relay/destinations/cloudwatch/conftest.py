"""A fake CloudWatch on loopback (moto), and the environment that makes boto3 use it."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import boto3
import pytest

from tests.moto import aws_environment, moto_server

__all__ = ["cloud", "moto_server"]


class FakeCloud:
    """Reads the metrics that arrived."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._client: Any = boto3.client("cloudwatch")

    def names(self, namespace: str) -> set[str]:
        return {metric["MetricName"] for metric in self._client.list_metrics(Namespace=namespace)["Metrics"]}

    def dimensions(self, namespace: str) -> set[tuple[tuple[str, str], ...]]:
        return {
            tuple((dimension["Name"], dimension["Value"]) for dimension in metric["Dimensions"])
            for metric in self._client.list_metrics(Namespace=namespace)["Metrics"]
        }

    def statistics(self, namespace: str, name: str, start_s: float, unit: str) -> list[dict[str, Any]]:
        """For each minute: SampleCount, Sum, Minimum, Maximum, Average."""
        response = self._client.get_metric_statistics(
            Namespace=namespace,
            MetricName=name,
            StartTime=datetime.fromtimestamp(start_s, timezone.utc),
            EndTime=datetime.fromtimestamp(start_s + 3600, timezone.utc),
            Period=60,
            Statistics=["SampleCount", "Sum", "Minimum", "Maximum", "Average"],
            Unit=unit,
        )
        points: list[dict[str, Any]] = response["Datapoints"]
        return sorted(points, key=lambda point: point["Timestamp"])

    def close(self) -> None:
        self._client.close()


@pytest.fixture
def cloud(moto_server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCloud]:
    """An empty CloudWatch that boto3 is configured to use."""
    for name, value in aws_environment(moto_server).items():
        monkeypatch.setenv(name, value)
    urllib.request.urlopen(f"{moto_server}/moto-api/reset", data=b"").close()
    fake = FakeCloud(moto_server)
    yield fake
    fake.close()
