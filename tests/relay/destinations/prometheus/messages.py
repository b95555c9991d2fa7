"""Readers of remote write's messages, made by Google's protobuf from the fields of the official .proto files
(prometheus/prompb/{remote,types}.proto and prompb/io/prometheus/write/v2/types.proto).
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_F = descriptor_pb2.FieldDescriptorProto
_TYPES = {
    "string": _F.TYPE_STRING,
    "double": _F.TYPE_DOUBLE,
    "int64": _F.TYPE_INT64,
    "uint32": _F.TYPE_UINT32,
}

V1 = {
    "Label": [(1, "name", "string"), (2, "value", "string")],
    "Sample": [(1, "value", "double"), (2, "timestamp", "int64")],
    "TimeSeries": [(1, "labels", "*Label"), (2, "samples", "*Sample")],
    "MetricMetadata": [
        (1, "type", "uint32"),
        (2, "metric_family_name", "string"),
        (4, "help", "string"),
        (5, "unit", "string"),
    ],
    "WriteRequest": [(1, "timeseries", "*TimeSeries"), (3, "metadata", "*MetricMetadata")],
}
V2 = {
    "Sample": [(1, "value", "double"), (2, "timestamp", "int64"), (3, "start_timestamp", "int64")],
    "Metadata": [(1, "type", "uint32"), (3, "help_ref", "uint32"), (4, "unit_ref", "uint32")],
    "TimeSeries": [(1, "labels_refs", "*uint32"), (2, "samples", "*Sample"), (5, "metadata", "Metadata")],
    "Request": [(4, "symbols", "*string"), (5, "timeseries", "*TimeSeries")],
}


def _reader(package: str, messages: dict[str, list[tuple[int, str, str]]], top: str) -> Any:
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for number, field, kind in fields:
            plain = kind.removeprefix("*")
            label = _F.LABEL_REPEATED if kind.startswith("*") else _F.LABEL_OPTIONAL
            if plain in _TYPES:
                message.field.add(name=field, number=number, type=_TYPES[plain], label=label)
            else:
                type_name = f".{package}.{plain}"
                message.field.add(
                    name=field, number=number, type=_F.TYPE_MESSAGE, label=label, type_name=type_name
                )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{top}"))


WriteRequest = _reader("prometheus", V1, "WriteRequest")
Request = _reader("io.prometheus.write.v2", V2, "Request")
