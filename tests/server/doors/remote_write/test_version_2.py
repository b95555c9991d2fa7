"""Messages of remote write 2.0 as the protobuf library encodes them, by the published definition."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from runvitals.server.doors.remote_write.message import read_version_2
from runvitals.server.doors.remote_write.series_numbers import Labels, SeriesNumbers

PACKAGE = "io.prometheus.write.v2"
MESSAGES = {
    "Request": "4 string* symbols, 5 TimeSeries* timeseries",
    "TimeSeries": "1 uint32* labels_refs, 2 Sample* samples, 3 Histogram* histograms, 4 Exemplar* exemplars, "
    "5 Metadata metadata, 6 int64 created_timestamp",
    "Exemplar": "1 uint32* labels_refs, 2 double value, 3 int64 timestamp",
    "Sample": "1 double value, 2 int64 timestamp, 3 int64 start_timestamp",
    "Metadata": "1 uint32 type, 3 uint32 help_ref, 4 uint32 unit_ref",
    "BucketSpan": "1 sint32 offset, 2 uint32 length",
    "Histogram": "1 uint64 count_int, 2 double count_float, 3 double sum, 4 sint32 schema, "
    "5 double zero_threshold, 6 uint64 zero_count_int, 7 double zero_count_float, "
    "8 BucketSpan* negative_spans, 9 sint64* negative_deltas, 10 double* negative_counts, "
    "11 BucketSpan* positive_spans, 12 sint64* positive_deltas, 13 double* positive_counts, "
    "14 uint32 reset_hint, 15 int64 timestamp, 16 double* custom_values",
}
T = 1_760_000_000_000


def message_class(name: str) -> Any:
    """The class of a message of the definition."""
    file = FileDescriptorProto(name="write.proto", package=PACKAGE, syntax="proto3")
    for message, fields in MESSAGES.items():
        declared = file.message_type.add(name=message)
        for field in fields.split(", "):
            number, kind, field_name = field.split()
            repeated, kind = kind.endswith("*"), kind.rstrip("*")
            is_message = kind in MESSAGES
            declared.field.add(
                name=field_name,
                number=int(number),
                type=getattr(FieldDescriptorProto, "TYPE_MESSAGE" if is_message else f"TYPE_{kind.upper()}"),
                label=FieldDescriptorProto.LABEL_REPEATED
                if repeated
                else FieldDescriptorProto.LABEL_OPTIONAL,
                type_name=f".{PACKAGE}.{kind}" if is_message else None,
            )
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))


@pytest.fixture
def sent() -> Any:
    """A request with a counter, two exemplars and metadata, and native histograms of all three kinds."""
    symbols = ["", "__name__", "requests", "a", "b", "seconds", "custom", "floats", "help é"]
    request = message_class("Request")(symbols=symbols)
    counter = request.timeseries.add(labels_refs=[1, 2, 3, 4], created_timestamp=T - 1000)
    counter.samples.add(value=0, timestamp=T, start_timestamp=T - 1000)
    counter.samples.add(value=2.5, timestamp=T + 1)
    counter.metadata.help_ref = 8
    counter.exemplars.add(value=1.0, timestamp=T, labels_refs=[3, 99])
    about = {"sum": 9.0, "timestamp": T}
    integers = request.timeseries.add(labels_refs=[1, 5]).histograms.add(
        count_int=3, zero_count_int=1, **about
    )
    integers.positive_spans.add(offset=1, length=2)
    integers.positive_deltas.extend([1, 0])
    custom = request.timeseries.add(labels_refs=[1, 6]).histograms.add(count_int=3, schema=-53, **about)
    custom.custom_values.extend([0.5])
    custom.positive_spans.add(length=2)
    custom.positive_deltas.extend([1, 1])
    floats = request.timeseries.add(labels_refs=[1, 7]).histograms.add(count_float=1.5, **about)
    floats.positive_spans.add(length=1)
    floats.positive_counts.append(1.5)
    return request


def read(request: Any) -> tuple[dict[tuple[str, ...], list[float]], list[str]]:
    """The values of each series, and what is wrong with others."""
    seen: list[Labels] = []

    def number(labels: Labels) -> int:
        seen.append(labels)
        return len(seen) - 1

    samples = read_version_2(request.SerializeToString(), SeriesNumbers(number))
    values: dict[tuple[str, ...], list[float]] = {}
    for series, value in zip(samples.series.tolist(), samples.values.tolist(), strict=True):
        values.setdefault(seen[series], []).append(value)
    return values, list(samples.invalid)


def test_all_kinds_of_values(sent: Any) -> None:
    values, invalid = read(sent)
    assert invalid == []
    assert values["__name__", "requests", "a", "b"] == [0.0, 2.5]
    assert values["__name__", "seconds_count"] == [3.0]
    assert values["__name__", "seconds_sum"] == [9.0]
    assert [values["__name__", "seconds_bucket", "le", le][0] for le in ("2", "4", "+Inf")] == [2, 3, 3]
    assert [values["__name__", "custom_bucket", "le", le][0] for le in ("0.5", "+Inf")] == [1, 3]
    assert values["__name__", "floats_count"] == [1.5]


def test_series_with_wrong_references_are_left_out_and_the_others_stay(sent: Any) -> None:
    whole, _ = read(sent)
    sent.timeseries.add(labels_refs=[1]).samples.add(value=1, timestamp=T)
    sent.timeseries.add(labels_refs=[1, 2**32 - 1]).samples.add(value=1, timestamp=T)
    sent.timeseries.add(labels_refs=[1, 2, 1, 2]).samples.add(value=1, timestamp=T)
    sent.timeseries.add().samples.add(value=1, timestamp=T)
    sent.timeseries.add(labels_refs=[1, 3]).histograms.add(count_int=1, positive_deltas=[1])
    values, invalid = read(sent)
    assert values == whole
    assert len(invalid) == 5
