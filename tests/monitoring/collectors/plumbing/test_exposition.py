"""The text formats of exporters: both formats, invalid input, and agreement with another parser."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_prometheus

from runvitals.monitoring.collectors.plumbing.exposition import (
    COUNTER,
    CREATED,
    GAUGE,
    Exposition,
    ExpositionParser,
    ExpositionSample,
    parse,
)

PROMETHEUS = r"""
# HELP requests_total Requests, \\ and
# TYPE requests_total counter
requests_total{code="200",path="C:\\new\n\"x\""} 1027 1395066363000
requests_total{ code = "400" , path="/", }	3
# a comment of a person
#
no_type_here 12.47
# TYPE wait_seconds histogram
wait_seconds_bucket{le="0.5"} 24054
wait_seconds_bucket{le="+Inf"} 144320
wait_seconds_sum 53423
wait_seconds_count 144320
# TYPE rpc_seconds summary
rpc_seconds{quantile="0.99"} NaN
rpc_seconds_sum 1.7560473e+07
# TYPE lowest untyped
lowest -Inf
highest +Inf -3982045
# TYPE requests_created gauge
requests_created 1.395066363e9
"""

OPENMETRICS = """\
# TYPE jobs counter
# HELP jobs How many.
jobs_total{queue="a # b"} 17.0 1520879607.789 # {trace_id="KOO5S4vxi0o",n="}"} 0.67 1520879607.5
jobs_created{queue="a # b"} 1520430000.123 1520879607.789
# TYPE wait histogram
wait_bucket{le="0.1"} 8 # {} 0.054
wait_bucket{le="+Inf"} 17
wait_count 17
wait_sum 324789.3
# TYPE state stateset
state{state="on"} 1
# TYPE rest_seconds gauge
# UNIT rest_seconds seconds
rest_seconds 0.5
# TYPE build info
build_info{version="1.2"} 1
# TYPE shape gaugehistogram
shape_bucket{le="+Inf"} 3
shape_gcount 3
shape_gsum 9
# EOF
"""


def kinds(exposition: Exposition) -> dict[str, str]:
    return {sample.name: exposition.kind(sample.name) for sample in exposition.samples}


def test_the_prometheus_format() -> None:
    exposition = parse(PROMETHEUS.encode())
    assert (exposition.bad, exposition.first_bad, exposition.ended) == (0, "", False)
    first, second = exposition.samples[:2]
    assert first.labels == {"code": "200", "path": 'C:\\new\n"x"'}
    assert (first.value, first.time_s) == (1027.0, 1395066363.0)
    assert (second.labels, second.value, second.time_s) == ({"code": "400", "path": "/"}, 3.0, None)
    assert exposition.families["requests_total"].help == "Requests, \\ and"
    values = {sample.name: sample.value for sample in exposition.samples}
    assert math.isnan(values["rpc_seconds"])
    assert (values["lowest"], values["highest"]) == (-math.inf, math.inf)
    assert kinds(exposition) == {
        "requests_total": COUNTER,
        "no_type_here": GAUGE,
        "wait_seconds_bucket": COUNTER,
        "wait_seconds_sum": COUNTER,
        "wait_seconds_count": COUNTER,
        "rpc_seconds": GAUGE,
        "rpc_seconds_sum": COUNTER,
        "lowest": GAUGE,
        "highest": GAUGE,
        "requests_created": CREATED,
    }


def test_the_openmetrics_format() -> None:
    exposition = parse(OPENMETRICS.encode())
    assert (exposition.bad, exposition.ended) == (0, True)
    jobs = exposition.samples[0]
    assert (jobs.labels, jobs.value, jobs.time_s) == ({"queue": "a # b"}, 17.0, 1520879607.789)
    family = exposition.family("jobs_total")
    assert family is not None
    assert (family.type, family.help, exposition.families["rest_seconds"].unit) == (
        "counter",
        "How many.",
        "seconds",
    )
    assert kinds(exposition) == {
        "jobs_total": COUNTER,
        "jobs_created": CREATED,
        "wait_bucket": COUNTER,
        "wait_count": COUNTER,
        "wait_sum": COUNTER,
        "state": GAUGE,
        "rest_seconds": GAUGE,
        "build_info": GAUGE,
        "shape_bucket": GAUGE,
        "shape_gcount": GAUGE,
        "shape_gsum": GAUGE,
    }


def test_a_gauge_named_like_a_part_of_a_histogram_is_a_gauge() -> None:
    exposition = parse(b"# TYPE worker_count gauge\nworker_count 3\nother_count 4\n")
    assert kinds(exposition) == {"worker_count": GAUGE, "other_count": GAUGE}


def test_quoted_names_may_contain_any_characters() -> None:
    exposition = parse(b'# TYPE "my.metric" counter\n{"my.metric","a label"="x"} 4\n')
    assert (exposition.bad, exposition.samples[0].name, exposition.samples[0].labels) == (
        0,
        "my.metric",
        {"a label": "x"},
    )
    assert exposition.kind("my.metric") == COUNTER


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("temp", "missing value"),
        ("temp hot", "'hot' is not a number"),
        ("temp 1_000", "'1_000' is not a number"),
        ("temp 1 2 3", "'1 2 3' is more than a value and a time"),
        ("9temp 1", "invalid metric name '9temp'"),
        ("tëmp 1", "invalid metric name 'tëmp'"),
        ("{} 1", "invalid metric name ''"),
        ('temp{gpu="0" 1', "expected a comma or a closing brace after a label"),
        ('temp{gpu="0} 1', "unterminated quotes"),
        ('temp{gpu="0\\"} 1', "unterminated quotes"),
        ("temp{gpu=0} 1", "the value of label 'gpu' is not quoted"),
        ('temp{0="a"} 1', "invalid label name '0'"),
        ("temp{gpu} 1", "invalid label name 'gpu} 1'"),
        ('temp{a="1",a="2"} 1', "duplicate label 'a'"),
        ('temp{"other"} 1', "two metric names"),
        ('{"temp",a="1","b"} 1', "label 'b' has no value"),
        ("# TYPE temp thermometer", "unknown type 'thermometer'"),
        ('# HELP "temp', "unterminated quotes"),
    ],
)
def test_an_invalid_line_is_skipped_counted_and_reported(line: str, fault: str) -> None:
    exposition = parse(f"good 1\n{line}\nfine 2\n".encode())
    assert [sample.name for sample in exposition.samples] == ["good", "fine"]
    assert (exposition.bad, exposition.first_bad) == (1, f"line 2, {line!r}: {fault}")


def test_a_long_invalid_line_is_truncated_in_the_report() -> None:
    assert len(parse(b"x" * 5000).first_bad) < 200


def test_lines_after_the_end_are_invalid() -> None:
    exposition = parse(b"a 1\n# EOF\nb 2\nc 3\n")
    assert ([sample.name for sample in exposition.samples], exposition.bad) == (["a"], 1)


def test_windows_line_ends_missing_last_line_end_and_invalid_utf_8() -> None:
    exposition = parse(b'a{b="\xff\xfe"} 1\r\nc 2')
    assert exposition.bad == 0
    assert [(sample.labels, sample.value) for sample in exposition.samples] == [
        ({"b": "\ufffd\ufffd"}, 1),
        ({}, 2),
    ]


def test_empty_input() -> None:
    assert (parse(b"").samples, parse(b"\n\n").bad) == ([], 0)


def test_html_has_only_invalid_lines() -> None:
    exposition = parse(b"<!doctype html>\n<html><body>Not here</body></html>\n")
    assert (exposition.samples, exposition.bad) == ([], 2)


# An independent writer of the two formats, and the values to write.
NAMES = st.from_regex(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,12}", fullmatch=True)
# Two underscores in front are reserved, and rejected by the Prometheus client.
LABEL_NAMES = st.from_regex(r"_?[a-zA-Z][a-zA-Z0-9_]{0,8}", fullmatch=True)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=12)
SERIES = st.tuples(NAMES, st.dictionaries(LABEL_NAMES, TEXTS, max_size=4), st.floats())
BLANKS = st.sampled_from([" ", "  ", "\t"])


def written(name: str, labels: dict[str, str], value: float, blank: str = " ") -> str:
    pairs = [
        '{}="{}"'.format(key, text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n"))
        for key, text in labels.items()
    ]
    number = {math.inf: "+Inf", -math.inf: "-Inf"}.get(value, repr(value))
    return f"{name}{{{','.join(pairs)}}}{blank}{number}" if pairs else f"{name}{blank}{number}"


def comparable(series: Iterable[tuple[str, dict[str, str], float]]) -> list[tuple[object, ...]]:
    return [(name, labels, repr(value)) for name, labels, value in series]


@given(st.lists(st.tuples(SERIES, BLANKS), max_size=8))
def test_written_text_is_parsed(wanted: list[tuple[tuple[str, dict[str, str], float], str]]) -> None:
    text = "\n".join(written(*series, blank) for series, blank in wanted)
    exposition = parse(text.encode())
    assert exposition.bad == 0
    read = [(sample.name, sample.labels, sample.value) for sample in exposition.samples]
    assert comparable(read) == comparable(series for series, _ in wanted)


@given(st.binary(max_size=200) | st.text(alphabet='ab_{}="\\, \n\t#1.TYPEHL', max_size=60).map(str.encode))
def test_any_bytes_are_parsed_without_an_exception(data: bytes) -> None:
    exposition = parse(data)
    assert (exposition.bad > 0) == bool(exposition.first_bad)


@given(st.lists(SERIES, max_size=5, unique_by=lambda series: series[0]))
def test_the_prometheus_client_agrees(wanted: list[tuple[str, dict[str, str], float]]) -> None:
    text = "".join(written(*series) + "\n" for series in wanted)
    theirs = [
        (sample.name, sample.labels, sample.value)
        for family in read_prometheus(text)
        for sample in family.samples
    ]
    ours = [(sample.name, sample.labels, sample.value) for sample in parse(text.encode()).samples]
    assert comparable(ours) == comparable(theirs)


@pytest.mark.parametrize("text", [PROMETHEUS, OPENMETRICS])
def test_the_prometheus_client_agrees_on_the_documents_above(text: str) -> None:
    read = read_openmetrics if text is OPENMETRICS else read_prometheus
    theirs = [sample for family in read(text) for sample in family.samples]
    ours = parse(text.encode()).samples
    assert comparable((s.name, s.labels, s.value) for s in ours) == comparable(
        (s.name, dict(s.labels), float(s.value)) for s in theirs
    )
    times = [None if s.timestamp is None else float(s.timestamp) for s in theirs]
    assert [sample.time_s for sample in ours] == times


@pytest.mark.parametrize(
    "text",
    [
        PROMETHEUS,
        'a{x="1"} 1 # {trace="b"} 0.5\na{x="1"} 2 # {trace="c"} 0.5\n# EOF\n',
        '{"a b",x="}"} 1\n{"a b",x="}"} 2 3\na{x="}"\na{x="} 1\nb 1 # {t="}"} 1\nb 2 # {t="}"} 1\n',
    ],
)
def test_families_of_an_earlier_response_do_not_matter(text: str) -> None:
    heads: dict[str, tuple[str, dict[str, str]]] = {}
    fresh = parse(text.encode())
    for _ in range(2):
        again = parse(text.encode(), heads=heads)
        assert repr(again.samples) == repr(fresh.samples)
        assert (again.bad, again.first_bad) == (fresh.bad, fresh.first_bad)


# -- input in pieces

PIECES = b'# TYPE a counter\na_total{b="\xc3\xa9\xe2\x82\xac"} 7\n\nbad line here\nc 2 1000\n# EOF\nd 4'


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_a_response_in_pieces_is_parsed_like_a_whole_one(size: int) -> None:
    whole = parse(PIECES, openmetrics=False)
    samples: list[ExpositionSample] = []
    parser = ExpositionParser(samples.append)
    for at in range(0, len(PIECES), size):
        parser.feed(PIECES[at : at + size])
    parser.end()
    assert repr(samples) == repr(whole.samples)
    assert parser.taken == 2
    page = parser.page
    assert (page.bad, page.first_bad, page.ended) == (whole.bad, whole.first_bad, True)
    assert page.kind("a_total") == "counter"


def test_an_endless_line_is_skipped() -> None:
    samples: list[ExpositionSample] = []
    parser = ExpositionParser(samples.append)
    parser.feed(b"a 1\n")
    for _ in range(40):
        parser.feed(b"x" * 10_000)
    parser.feed(b" 5\nb 2\n")
    parser.end()
    assert [sample.name for sample in samples] == ["a", "b"]
    assert parser.page.bad == 1
    assert parser.page.first_bad.endswith("longer than 65536 bytes")
    assert parser.page.first_bad.startswith("line 2, 'xxx")


def test_only_the_last_of_very_many_families_are_remembered() -> None:
    parser = ExpositionParser(lambda _: None)
    for number in range(8000):
        parser.feed(b"# TYPE m%d counter\nm%d 1\n" % (number, number))
    assert len(parser.page.families) == 5000
    assert parser.page.kind("m7999") == "counter"


@pytest.mark.parametrize("word", ["COUNTER", "Counter"])
def test_types_in_capitals_are_types(word: str) -> None:
    exposition = parse(f"# TYPE steps {word}\nsteps 5\n".encode())
    assert (exposition.bad, exposition.kind("steps")) == (0, COUNTER)


def test_a_byte_order_mark_is_no_part_of_the_first_line() -> None:
    exposition = parse("\ufeff# TYPE steps counter\nsteps 5\n".encode())
    assert (exposition.bad, exposition.kind("steps")) == (0, COUNTER)
