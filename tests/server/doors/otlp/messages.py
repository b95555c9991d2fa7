"""Requests made by OpenTelemetry's own classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Metric

DELTA = AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
CUMULATIVE = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
NO_VALUE = 1


def pairs(attributes: Mapping[str, Any]) -> list[KeyValue]:
    key_values = []
    for name, value in attributes.items():
        pair = KeyValue(key=name)
        kind = {str: "string", bool: "bool", int: "int", float: "double", bytes: "bytes"}[type(value)]
        setattr(pair.value, f"{kind}_value", value)
        key_values.append(pair)
    return key_values


def request(resource: Mapping[str, Any], *metrics: Metric) -> ExportMetricsServiceRequest:
    message = ExportMetricsServiceRequest()
    resource_metrics = message.resource_metrics.add()
    resource_metrics.resource.attributes.extend(pairs(resource))
    resource_metrics.scope_metrics.add().metrics.extend(metrics)
    return message


def gauge(name: str, unit: str, *points: Mapping[str, Any]) -> Metric:
    """A gauge; a point has `time_unix_nano`, `as_double` or `as_int`, `flags`, and a dict of `attributes`."""
    metric = Metric(name=name, unit=unit)
    _fill(metric.gauge, points)
    return metric


def total(
    name: str, unit: str, *points: Mapping[str, Any], temporality: int = CUMULATIVE, monotonic: bool = True
) -> Metric:
    metric = Metric(name=name, unit=unit)
    metric.sum.aggregation_temporality, metric.sum.is_monotonic = temporality, monotonic
    _fill(metric.sum, points)
    return metric


def histogram(name: str, unit: str, *points: Mapping[str, Any], temporality: int = CUMULATIVE) -> Metric:
    metric = Metric(name=name, unit=unit)
    metric.histogram.aggregation_temporality = temporality
    _fill(metric.histogram, points)
    return metric


def _fill(data: Any, points: Any) -> None:
    for point in points:
        attributes = point.get("attributes", {})
        data.data_points.add(**{**point, "attributes": pairs(attributes)})
