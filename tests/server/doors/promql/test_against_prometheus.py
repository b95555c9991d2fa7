"""The same queries to our server and to a real Prometheus that has the same samples."""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx
import numpy as np
import pytest

from runvitals.base.protobuf import text
from tests.patience import PATIENCE_S
from tests.relay.real_servers import Prometheus
from tests.server.doors.remote_write.messages import STALE, Series, histogram, post, version_1
from tests.server.serving import serving

CLIENT = httpx.Client(timeout=PATIENCE_S)
"""A client of its own for each request would take longer than all queries."""
STEP_MS = 15_000
START_MS = (time.time_ns() // 1_000_000 - 3_600_000) // STEP_MS * STEP_MS
# Not at the times of samples: whether the left end of a window belongs to it depends on the version.
FIRST_S, LAST_S = START_MS / 1000 + 301.5, START_MS / 1000 + 1201.5


QUERIES = [
    "m", 'm{job="a"}', 'm{job!="a"}', 'm{job=~"a|c"}', 'm{job!~"a.*"}', '{__name__=~"m|counter"}',
    "m offset 2m", "m offset -30s", "counter", "rate(counter[1m])", "increase(counter[2m])",
    "irate(counter[1m])", "delta(m[1m])", "idelta(m[1m])", "deriv(m[2m])", "predict_linear(m[2m], 60)",
    "resets(counter[5m])", "changes(m[2m])", "avg_over_time(m[1m])", "min_over_time(m[1m])",
    "max_over_time(m[1m])", "sum_over_time(m[1m])", "count_over_time(m[1m])", "last_over_time(m[1m])",
    "present_over_time(m[1m])", "stddev_over_time(m[1m])", "stdvar_over_time(m[1m])",
    "quantile_over_time(0.9, m[2m])", "sum(m)", "sum by (job) (m)", "sum without (shard, host) (m)",
    "avg(m)", "min(m) by (shard)", "max(m) by (job)", "count(m)", "group(m)", "stddev(m)",
    "stdvar(m) by (job)", "topk(2, m)", "bottomk(1, m)", "quantile(0.5, m)",
    "quantile by (job) (0.25, m)", "quantile(2, m)", "-m", "m + 1", "2 * m - m / 3", "m % 7", "m ^ 2",
    "2 ^ m", "m / 0", "m > 25", "25 < m", "m > bool 25", "m == m", "m and on(job) counter",
    "m or counter", "m unless counter", 'm unless on(job) m{job="a"}',
    "rate(counter[1m]) / on(job, shard) m", "m * on(job) group_left(color) info",
    "info * on(job) group_right(color) m", "sum by (job) (rate(counter[1m])) / sum by (job) (m)",
    "m - ignoring(shard) group_left() max without (shard) (m)", "1 + 2", "1 > bool 2", "time()",
    "vector(3)", "scalar(sum(m))", 'scalar(m)', "abs(-m)", "ceil(m)", "floor(m)", "round(m)",
    "round(m, 5)", "clamp(m, 10, 90)", "clamp_min(m, 50)", "clamp_max(m, 50)", "exp(m / 100)", "ln(m)",
    "log2(m)", "log10(m)", "sqrt(m)", "sgn(m - 100)", 'label_replace(m, "where", "$1-x", "job", "(.*)")',
    'label_join(m, "both", "/", "job", "shard")', "timestamp(m)", "absent(nothing)",
    'absent(nothing{job="a"})', "absent(m)", "absent_over_time(nothing[1m])",
    "histogram_quantile(0.9, sum by (le) (rate(h_bucket[2m])))",
    "histogram_quantile(0.5, rate(h_bucket[1m]))", "sort_desc(m)",
    # Modifiers: a time, the ends of the query, and both with an offset.
    "m @ {middle}", "m @ start()", "m @ end()", "m offset 1m @ end()", "m @ end() offset 1m",
    "sum(rate(counter[1m] @ end()))", "m - m @ start()",
    "m / ignoring(shard) group_left m{shard='0'} @ end()",
    "m and topk(2, sum_over_time(m[2m] @ end()))", "timestamp(m @ {middle})", "timestamp(m offset 2m)",
    "deriv(m[2m] @ end())", "predict_linear(m[2m] offset 1m, 60)",
    "holt_winters(m[2m], 0.3, 0.7)", "holt_winters(counter[5m], 0.99, 0.01)",
    "holt_winters(m[20s], 0.5, 0.5)",
    "deriv(m[2m] offset 1m)", "rate(counter[59s] offset -1m)", "rate(counter[59s] offset 90s)",
    # Subqueries. Their ranges are not multiples of their steps, and nested ones do not reach back to
    # the beginning of the samples, where `rate` depends on the version.
    "max_over_time(rate(counter[59s])[5m:20s])", "min_over_time(sum(m)[3m:])",
    "avg_over_time(sum by (job) (m)[3m:25s])", "rate(counter[5m:20s])", "increase(counter[3m:10s])",
    "max_over_time(m[3m:20s] offset 1m)", "max_over_time(m[3m:20s] @ end())",
    "last_over_time(m[3m:20s] @ start() offset 1m)", "max_over_time((m > 25)[5m:15s])",
    "max_over_time(deriv(rate(counter[59s])[119s:10s])[90s:30s])", "sum_over_time(vector(1)[5m:1m])",
    "count_over_time((m @ end())[3m:20s])", "quantile_over_time(0.5, (m * 2)[3m:20s])",
    "absent_over_time(nothing[5m:1m])", "absent_over_time((m > 10000)[5m:1m])",
    "stddev_over_time(vector(time())[5m:30s])", "sum_over_time((time() - timestamp(m))[3m:20s])",
    # Counting values.
    'count_values("value", m)', 'count_values by (job) ("value", floor(m))',
    'count_values without (shard, host) ("job", m > bool 25)',
    # Numbers and texts.
    "sum(m) atan2 2", "pi() * 2", "-pi()", "clamp(m, 90, 10)", "clamp(m, NaN, 1)", "round(m, 0.3)",
    "round(-m)",
    "sort(m / 0)", "m % 0", "-m % 7", "m ^ -1", "m ^ 0.5 ^ 2", "- m ^ 2", "0x1f + m", "1e3 * m", "Inf - m",
    "NaN == m", "NaN != bool m", "m <= 25", "m >= bool 25", "m != 25", "5 == bool 5",
    'label_replace(m, "a", "$2$1", "job", "(.)(x?)")',
    'label_replace(m, "a", "b", "none", "")', 'label_join(m, "job", "-", "none", "job")',
    'absent(m{job="x", job="y", shard="1"})', 'absent(m{job=~"x"})', "absent(sum(nothing))",
    "scalar(nothing)", "vector(time())", "time() - 3600", "vector(scalar(m))",
    # Many to one, sets, and aggregations with an expression as their parameter.
    "m > on(job, shard) counter", "m > bool on(job, shard) counter",
    "m != ignoring(shard, color) group_left() info",
    "m * on(job) group_left() info", "m and ignoring(color, shard) info", "sum(m) or vector(0)",
    "sum(nothing) or vector(0)", "(m or info) unless on(job) m{job='c'}", "topk(1 + 1, m)",
    "topk by (job) (1, m)", "bottomk(scalar(count(info)) - 1, m)", "quantile(scalar(vector(0.9)), m)",
    "stddev by (job) (m)", "avg without (shard) (m)", "count by (none) (m)", "sum by () (m)", "topk(0, m)",
    "group by (job, shard) (counter)", "quantile(-1, m)",
    # As dashboards write them.
    "100 * (1 - avg by (host) (rate(counter[2m])) / 100)", "sum(rate(h_bucket[2m])) by (le)",
    "histogram_quantile(0.99, sum by (le, job) (rate(h_bucket[2m])))", "histogram_quantile(-1, h_bucket)",
    "histogram_quantile(0.9, h_bucket) > 0", "histogram_quantile(2, h_bucket)",
    "sum(increase(counter[5m])) by (job) > 0 or sum(counter) by (job) * 0",
    *(f"{name}_over_time({of}[2m:20s])" for name in ("avg", "min", "sum", "count", "stdvar", "present")
      for of in ("m", "rate(counter[59s])")),
    *(f"{name}(counter[{over}])"
      for name in ("rate", "irate", "delta", "idelta", "resets", "changes", "deriv")
      for over in ("20s", "5m", "3m:20s")),
    *(f"{name}({of})" for name in ("year", "month", "hour", "minute", "day_of_week", "day_of_month",
                                   "day_of_year", "days_in_month")
      for of in ("", "vector(1709164799.9)", "m * 1e7")),
    *(f"{name}(unset[{over}])"
      for name in ("count_over_time", "max_over_time", "min_over_time", "avg_over_time", "sum_over_time",
                   "last_over_time", "changes", "stddev_over_time", "present_over_time", "resets", "rate")
      for over in ("1m", "3m")),
    "rate(hits_total[1m])", "sum by (instance) (rate(hits_total[2m]))", "count(hits_total)",
    "max without (prometheus_replica) (increase(hits_total[3m]))", 'hits_total{instance=~".*:917[1-3]"}',
    "unset", "unset + 1", "sum(unset)", "max(unset)", "count(unset)", "unset == unset", "1 + on() 2",
    *(f"histogram_quantile({fraction}, {of})" for fraction in (-1, 1.5, "NaN")
      for of in ("h_bucket", "h_bucket{le!='+Inf'}", "h_bucket{le='+Inf'}", "h_bucket * 0")),
    *(f"{name}({of})" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan",
                                   "asinh", "acosh", "atanh", "deg", "rad") for of in ("m / 100",)),
]  # fmt: skip
NOTHING = {"absent(m)", "m unless counter", "clamp(m, 90, 10)", "NaN == m", "topk(0, m)"}


class Both(NamedTuple):
    """Addresses of the query APIs."""

    ours: str
    theirs: str


def written() -> list[Series]:
    """Series as Prometheus has them: gauges, counters that are reset, a histogram, gaps and ends."""
    rng = np.random.default_rng(7)
    series: list[Series] = []
    for number, (job, shard) in enumerate((job, shard) for job in "abc" for shard in "01"):
        labels = {"host": "n1", "job": job, "shard": shard}
        at = [START_MS + STEP_MS * tick + 10 * number for tick in range(90)]
        walk = 100 + np.cumsum(rng.integers(-5, 6, 90))
        grown = np.cumsum(rng.integers(0, 9, 90)) % 150
        gauge = list(zip(at, (walk / 4).tolist(), strict=True))
        if job == "b":
            gauge[40:60] = [(at[40], STALE)]  # it ends, and begins again
        series.append(({"__name__": "m", **labels}, gauge))
        series.append(
            ({"__name__": "counter", **labels}, list(zip(at, map(float, grown.tolist()), strict=True)))
        )
    at = [START_MS + STEP_MS * tick for tick in range(90)]
    counts = np.cumsum(rng.integers(0, 4, (90, 4)), axis=0)
    for index, le in enumerate(("0.1", "0.5", "2.5", "+Inf")):
        values = map(float, counts[:, : index + 1].sum(axis=1).tolist())
        series.append(({"__name__": "h_bucket", "host": "n1", "le": le}, list(zip(at, values, strict=True))))
    for job in "abc":
        info = {"__name__": "info", "host": "n1", "job": job, "color": f"color-{job}"}
        series.append((info, [(t, 1.0) for t in at]))
    targets = [(port, replica) for port in range(9171, 9179) for replica in "ab"]
    for number, (port, replica) in enumerate(targets):
        target = {"host": "n1", "instance": f"n1:{port}", "job": "exporter", "prometheus_replica": replica}
        grown = [(t + 17 * number, 1000.0 * number + tick * (number + 1)) for tick, t in enumerate(at)]
        series.append(({"__name__": "hits_total", **target}, grown))
    unset = [(t, math.nan if tick % 7 in (2, 3) else float(tick % 5)) for tick, t in enumerate(at)]
    series.append(({"__name__": "unset", "host": "n1"}, unset))
    return series


def native(**labels: str) -> bytes:
    """A native histogram `wait`, with buckets that grow by 9 %: three distributions, and a reset."""
    rng = np.random.default_rng(11)
    buckets: Counter[int] = Counter()
    histograms, total = [], 0.0
    for tick in range(90):
        if tick == 50:
            buckets, total = Counter(), 0.0
        values = rng.lognormal((-3, 0, 2)[tick // 30], 1.0, 40)
        buckets.update(math.ceil(math.log2(value) * 8) for value in values.tolist())
        total += float(values.sum())
        histograms.append(histogram(3, buckets, total=total, t=START_MS + STEP_MS * tick))
    named = sorted({"__name__": "wait", "host": "n1", **labels}.items())
    parts = [text(1, text(1, name) + text(2, value)) for name, value in named]
    return text(1, b"".join((*parts, *(text(4, one) for one in histograms))))


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    folder = tmp_path_factory.mktemp("promql")
    with serving(folder / "ours") as served, Prometheus(folder / "theirs") as prometheus, CLIENT:
        series = written()
        sent = post(
            served.url,
            version_1(
                [({**labels, "runvitals_run": "r1"}, samples) for labels, samples in series],
                native(runvitals_run="r1"),
            ),
        )
        assert sent.status_code == 204, sent.text
        project = httpx.get(f"{served.url}/api/v1/runs/r1", timeout=PATIENCE_S).json()["project"]
        theirs = [({**labels, "run": "r1", "project": project}, samples) for labels, samples in series]
        sent = post(prometheus.url, version_1(theirs, native(run="r1", project=project)))
        assert sent.status_code == 204, sent.text
        yield Both(f"{served.url}/prometheus/api/v1", f"{prometheus.url}/api/v1")


def asked(url: str, path: str, parameters: Any) -> Any:
    response = CLIENT.get(f"{url}/{path}", params=parameters)
    assert response.status_code == 200, response.text
    return response.json()["data"]


def comparable(data: Any) -> Any:
    """A result in any order, with numbers."""
    if data["resultType"] == "scalar":
        return float(data["result"][1])
    by_labels = {}
    for series in data["result"]:
        points = series["values"] if "values" in series else [series["value"]]
        by_labels[tuple(sorted(series["metric"].items()))] = {float(t): float(value) for t, value in points}
    return by_labels


def same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, float):
        return math.isclose(ours, theirs, rel_tol=1e-6) or (math.isnan(ours) and math.isnan(theirs))
    return bool(
        ours.keys() == theirs.keys()
        and all(
            points.keys() == theirs[labels].keys()
            and all(
                math.isclose(value, theirs[labels][t], rel_tol=1e-6, abs_tol=1e-9)
                or (math.isnan(value) and math.isnan(theirs[labels][t]))
                for t, value in points.items()
            )
            for labels, points in ours.items()
        )
    )


def difference(ours: Any, theirs: Any) -> Any:
    """The first series that differs."""
    if isinstance(ours, float) or ours.keys() != theirs.keys():
        return ours, theirs
    return next(
        (labels, sorted(points.items() ^ theirs[labels].items())[:6])
        for labels, points in ours.items()
        if not same({labels: points}, {labels: theirs[labels]})
    )


@pytest.mark.parametrize("query", QUERIES)
def test_the_same_answer(both: Both, query: str) -> None:
    query = query.replace("{middle}", f"{FIRST_S + 450}")
    over = {"query": query, "start": FIRST_S, "end": LAST_S, "step": "25s"}
    ours, theirs = (comparable(asked(url, "query_range", over)) for url in both)
    assert same(ours, theirs), difference(ours, theirs)
    assert ours or isinstance(ours, float) or query in NOTHING
    once = {"query": query, "time": FIRST_S + 400}
    ours, theirs = (comparable(asked(url, "query", once)) for url in both)
    assert same(ours, theirs), difference(ours, theirs)


@pytest.mark.parametrize(
    ("query", "ratio"),
    [
        ("histogram_count(wait)", 1),
        ("histogram_sum(wait)", 1),
        ("histogram_count(rate(wait[2m]))", 1),
        ("histogram_sum(rate(wait[2m]))", 1),
        ("histogram_sum(rate(wait[2m])) / histogram_count(rate(wait[2m]))", 1),
        ("histogram_count(sum by (host) (increase(wait[5m])))", 1),
        ("histogram_fraction(0.25, 4, rate(wait[2m]))", 1),
        *((f"histogram_quantile({fraction}, rate(wait[5m]))", 2) for fraction in (0.1, 0.5, 0.9, 0.99)),
        ("histogram_quantile(0.9, sum(rate(wait[2m])))", 2),
        ("histogram_quantile(0.5, wait)", 2),
    ],
)
def test_native_histograms_within_their_buckets(both: Both, query: str, ratio: float) -> None:
    over = {"query": query, "start": FIRST_S, "end": LAST_S, "step": "25s"}
    (ours,), (theirs,) = (comparable(asked(url, "query_range", over)).values() for url in both)
    assert ours.keys() == theirs.keys()
    worst = max(abs(math.log(ours[t] / theirs[t])) for t in ours)
    assert worst <= math.log(ratio) + 1e-6


def test_range_vectors_and_texts(both: Both) -> None:
    subqueries = ("m[3m:20s]", "m[3m:20s] @ end()", "sum(m)[5m:] offset 1m", "(m > 25)[5m:30s]")
    for query in ("m[1m]", 'm{job="b"}[5m] offset 1m', f"m[2m] @ {FIRST_S + 500}", *subqueries):
        ours, theirs = (comparable(asked(url, "query", {"query": query, "time": LAST_S})) for url in both)
        assert same(ours, theirs)
        assert ours
    assert [asked(url, "query", {"query": "'a'", "time": 5.5})["result"] for url in both] == [[5.5, "a"]] * 2


def test_series_and_labels(both: Both) -> None:
    span = [("start", f"{FIRST_S}"), ("end", f"{LAST_S}")]
    matches = [("match[]", 'm{job="a"}'), ("match[]", "info")]
    ours, theirs = (asked(url, "series", [*matches, *span]) for url in both)
    assert sorted(ours, key=str) == sorted(theirs, key=str)
    for path in ("labels", "label/job/values", "label/__name__/values", "label/nothing/values"):
        for parameters in (span, [*matches, *span]):
            ours, theirs = (
                [value for value in asked(url, path, parameters) if not value.startswith("wait")]
                for url in both
            )
            assert ours == theirs, path


@pytest.mark.parametrize(
    "query",
    [
        "m{", "nothing(m)", "rate(m)", "m[1m]", "m + 'a'", "sum(1)", "m * on(job) m", "1 > 2", "1 and m",
        "m{job=~'('}", "clamp(m)", "scalar(1)", "vector(m)", "label_replace(m, '1', '', '', '')",
        "label_replace(m, 'shard', 'x', '', '')", "info * on(host) group_left() m", "m[5m:1m]", "m[5m:0s]",
        "m[0s]", "sum(m)[5m]", "rate(sum(m)[5m])", "time()[5m:1m]", "m[5m:1m][5m:1m]", "sum(m) offset 1m",
        "sum(m) @ 5", "m @ x", "m @ 1 @ 2", "m offset 1m offset 2m", "m[1m] offset", "m offset 1m [5m]",
        "count_values(1, m)", "count_values('a b', m)", "count_values('a')", "hour(1)", "hour(m, m)", "pi(1)",
        "topk('a', m)", "sum(m, m)", "absent_over_time(m)", "timestamp(1)", "topk(NaN, m)",
        "bottomk(1e19, m)", "holt_winters(m[2m], 0, 0.5)", "holt_winters(m[2m], 0.5, 1)",
        "holt_winters(m[2m])",
        "label_replace(m, 'job', '', 'job', '.*')", "label_join(m, 'a b', '')",
        "1 + on(a) 2", "m + on(job) 1", "1 / ignoring(job) m", "1 == bool on(a) 2",
    ],
)  # fmt: skip
def test_what_prometheus_refuses_we_refuse_with_its_kind_of_error(both: Both, query: str) -> None:
    over = {"query": query, "start": FIRST_S, "end": LAST_S, "step": "25s"}
    responses = [CLIENT.get(f"{url}/query_range", params=over) for url in both]
    assert [response.json()["status"] for response in responses] == ["error", "error"]
    ours, theirs = responses
    assert (ours.status_code, ours.json()["errorType"]) == (theirs.status_code, theirs.json()["errorType"])


@pytest.mark.parametrize(
    ("query", "of_2"),
    [
        ("count(limitk(2, m))", "count(topk(2, m))"),
        ("count by (job) (limitk by (job) (1, m))", "count by (job) (topk by (job) (1, m))"),
        ("limitk(100, m)", "m"),
        ("limit_ratio(1, m)", "m"),
        ("limit_ratio(2, m)", "m"),
        ("limit_ratio(0.4, m) or limit_ratio(-0.6, m)", "m"),
        ("count(limit_ratio(0.4, m)) + count(limit_ratio(-0.6, m))", "count(m)"),
        ("double_exponential_smoothing(m[2m], 0.3, 0.7)", "holt_winters(m[2m], 0.3, 0.7)"),
    ],
)
def test_what_only_prometheus_3_has(both: Both, query: str, of_2: str) -> None:
    """Compared with what gives the same in version 2, which is the one that is installed."""
    over = {"start": FIRST_S, "end": LAST_S, "step": "25s"}
    pairs = ((both.ours, query), (both.theirs, of_2))
    ours, theirs = (comparable(asked(url, "query_range", {"query": text, **over})) for url, text in pairs)
    assert ours
    assert same(ours, theirs), difference(ours, theirs)


def test_what_grafana_asks_for_besides_queries(both: Both) -> None:
    for path in ("rules", "alerts"):
        assert asked(both.ours, path, {}) == asked(both.theirs, path, {})
    parameters = {"query": "m", "start": FIRST_S, "end": LAST_S}
    for method in ("GET", "POST"):
        how = {"params": parameters} if method == "GET" else {"data": parameters}
        for path in ("query_exemplars", "labels"):
            response = CLIENT.request(method, f"{both.ours}/{path}", **how)
            assert response.json() == CLIENT.request(method, f"{both.theirs}/{path}", **how).json()
    wrong = [CLIENT.get(f"{url}/label/not-a-label/values") for url in both]
    assert [(response.status_code, response.json()["errorType"]) for response in wrong] == [
        (400, "bad_data")
    ] * 2
    span = {"match[]": "m", "start": FIRST_S, "end": LAST_S, "limit": 2}
    assert [len(asked(both.ours, path, span)) for path in ("series", "labels", "label/job/values")] == [2] * 3


def test_queries_are_formatted_as_prometheus_does(both: Both) -> None:
    """It breaks long lines, and keeps parentheses and empty `on ()` as they were written."""
    formatted = {}
    for query in (query.replace("{middle}", f"{FIRST_S + 450}") for query in QUERIES):
        ours, theirs = (CLIENT.get(f"{url}/format_query", params={"query": query}) for url in both)
        if theirs.json()["status"] == "success" and "on()" not in query:
            one_line = re.sub(r"\s+", " ", theirs.json()["data"])
            formatted[query] = ours.json()["data"], one_line.replace("( ", "(").replace(" )", ")")
    assert len(formatted) > 250
    assert [query for query, (ours, theirs) in formatted.items() if ours != theirs] == []
    wrong = CLIENT.get(f"{both.ours}/format_query", params={"query": "m{"})
    assert (wrong.status_code, wrong.json()["errorType"]) == (400, "bad_data")


def test_the_syntax_tree_of_a_query(both: Both) -> None:
    tree = asked(both.ours, "parse_query", {"query": "sum by (job) (rate(m{a!='b'}[1m])) > bool 5"})
    selector = tree["lhs"]["expr"]["args"][0]
    assert (tree["type"], tree["op"], tree["bool"], tree["matching"]) == ("binaryExpr", ">", True, None)
    assert tree["rhs"] == {"type": "numberLiteral", "val": "5"}
    assert (tree["lhs"]["grouping"], tree["lhs"]["expr"]["func"]["name"]) == (["job"], "rate")
    assert (selector["type"], selector["name"], selector["range"]) == ("matrixSelector", "m", 60_000)
    assert selector["matchers"][1] == {"name": "a", "value": "b", "type": "!="}


def test_forms_and_limits(both: Both) -> None:
    over = {"query": "sum(m)", "start": f"{FIRST_S}", "end": f"{LAST_S}", "step": "25"}
    response = httpx.post(f"{both.ours}/query_range", data=over, timeout=PATIENCE_S)
    assert comparable(response.json()["data"]) == comparable(asked(both.ours, "query_range", over))
    for changed in ({"step": "0"}, {"step": "0.001"}, {"end": "1"}, {"start": "never"}, {"step": "x"}):
        response = httpx.get(f"{both.ours}/query_range", params={**over, **changed}, timeout=PATIENCE_S)
        assert (response.status_code, response.json()["errorType"]) == (400, "bad_data"), changed
    assert httpx.get(f"{both.ours}/query", timeout=PATIENCE_S).json()["errorType"] == "bad_data"
    many = httpx.get(f"{both.ours}/query?query=1" + "&a=1" * 1000, timeout=PATIENCE_S)
    assert (many.status_code, many.json()["errorType"]) == (400, "bad_data")
    assert asked(both.ours, "metadata", {"limit": "9" * 5000})


def test_a_query_of_too_many_points(monkeypatch: pytest.MonkeyPatch, both: Both) -> None:
    over = {"query": "m", "start": FIRST_S, "end": LAST_S, "step": "25"}
    for limit in ("evaluator.MAX_POINTS", "series_source.MAX_SERIES", "series_source.MAX_SAMPLES"):
        with monkeypatch.context() as limits:
            limits.setattr(f"runvitals.server.doors.promql.{limit}", 5)
            response = httpx.get(f"{both.ours}/query_range", params=over, timeout=PATIENCE_S)
        assert (response.status_code, response.json()["errorType"]) == (422, "execution"), limit


def test_grafana_knows_what_this_is(both: Both) -> None:
    assert asked(both.ours, "status/buildinfo", {})["application"] == "runvitals"
    metadata = asked(both.ours, "metadata", {"metric": "runvitals_gpu_power_watts"})
    assert metadata["runvitals_gpu_power_watts"][0]["type"] == "gauge"
    assert asked(both.ours, "format_query", {"query": "sum(up)"}) == "sum(up)"
    for path in ("status/flags", "status/config", "status/runtimeinfo", "status/tsdb", "targets"):
        assert isinstance(asked(both.ours, path, {}), dict), path
    for method, path in (("GET", "alertmanagers"), ("POST", "admin/tsdb/snapshot")):
        response = httpx.request(method, f"{both.ours}/{path}", timeout=PATIENCE_S)
        assert (response.status_code, response.json()["errorType"]) == (404, "not_found")
        assert f"{path} is not supported" in response.json()["error"]
