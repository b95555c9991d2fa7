"""Prometheus' compliance queries: to this server, and to a real Prometheus that has the same samples.

The queries come from a checkout of prometheus/compliance. Their series are made here, named as in its demo.
"""

from __future__ import annotations

import itertools
import math
import re
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import yaml

from tests.patience import PATIENCE_S
from tests.relay.real_servers import Prometheus
from tests.server.doors.promql.test_against_prometheus import comparable, same
from tests.server.doors.remote_write.messages import STALE, Series, post, version_1
from tests.server.serving import serving

_STEP_MS = 15_000
_TICKS = 300
_ARGUMENT = re.compile(r"\{\{\s*\.(\w+)\s*\}\}")
_VARIANT = re.compile(r'"(\w+)":\s*\{([^}]*)\}')
"""In the checkout's Go source: the values of an argument of queries."""


def differences(checkout: Path) -> tuple[int, dict[str, str], int]:
    """Return how many queries have the same answer, what is wrong with others, and how many it skipped."""
    cases = yaml.safe_load((checkout / "promql/promql-test-queries.yml").read_text("utf-8"))["test_cases"]
    source = (checkout / "promql/testcases/expand.go").read_text("utf-8")
    variants = {name: re.findall('"([^"]*)"', values) for name, values in _VARIANT.findall(source)}
    queries = [query for case in cases for query in _queries(case, variants)]
    end_ms = time.time_ns() // 1_000_000 // _STEP_MS * _STEP_MS
    equal, wrong = 0, dict[str, str]()
    with (
        tempfile.TemporaryDirectory(prefix="peers.") as folder,
        serving(Path(folder) / "ours") as served,
        Prometheus(Path(folder) / "theirs") as prometheus,
        httpx.Client(timeout=PATIENCE_S) as client,
    ):
        series = _demo(end_ms)
        sent = [({**labels, "runvitals_run": "demo", "host": "demo"}, samples) for labels, samples in series]
        assert post(served.url, version_1(sent)).status_code == 204
        project = client.get(f"{served.url}/api/v1/runs/demo").json()["project"]
        about = {"run": "demo", "project": project, "host": "demo"}
        assert post(prometheus.url, version_1([({**labels, **about}, samples) for labels, samples in series]))
        urls = f"{served.url}/prometheus/api/v1/query_range", f"{prometheus.url}/api/v1/query_range"
        # Not at the times of samples: whether a window has its left end depends on the version.
        first_s, last_s = (end_ms - 600_000) / 1000 + 1.5, end_ms / 1000 - 13.5
        over = {"start": str(first_s), "end": str(last_s), "step": "10s"}
        for query, should_fail in queries:
            ours, theirs = (client.get(url, params={"query": query, **over}).json() for url in urls)
            problem = _problem(ours, theirs, should_fail)
            if problem:
                wrong[query] = problem
            else:
                equal += 1
    return equal, wrong, 0


def _queries(case: dict[str, Any], variants: dict[str, list[str]]) -> list[tuple[str, bool]]:
    """Return the queries of a case, one for each combination of arguments, and whether they are to fail."""
    names = case.get("variant_args") or []
    queries = []
    for chosen in itertools.product(*(variants[name] for name in names)):
        arguments = dict(zip(names, chosen, strict=True))
        text = _ARGUMENT.sub(lambda match: arguments[match[1]], str(case["query"]))  # noqa: B023
        queries.append((text, bool(case.get("should_fail"))))
    return queries


def _problem(ours: Any, theirs: Any, should_fail: bool) -> str:
    if theirs["status"] != "success":
        return "" if ours["status"] != "success" else f"Prometheus: {theirs['error'][:100]}"
    if ours["status"] != "success":
        return "" if should_fail else str(ours["error"])[:100]
    return "" if same(comparable(ours["data"]), comparable(theirs["data"])) else "another result"


def _demo(end_ms: int) -> list[Series]:
    """Series with the names and labels of the demo service."""
    rng = np.random.default_rng(11)
    times = [end_ms - _STEP_MS * (_TICKS - tick) for tick in range(_TICKS)]
    series: list[Series] = []

    def add(name: str, values: Any, **labels: str) -> None:
        numbers = np.asarray(values, np.float64).tolist()
        series.append(({"__name__": name, "job": "demo", **labels}, list(zip(times, numbers, strict=True))))

    for instance in (f"demo.promlabs.com:{port}" for port in (10000, 10001, 10002)):
        about = {"instance": instance}
        for kind in ("buffers", "cached", "free", "used"):
            add("demo_memory_usage_bytes", 1e9 + 1e6 * np.cumsum(rng.normal(size=_TICKS)), type=kind, **about)
        for mode in ("idle", "system", "user"):
            add("demo_cpu_usage_seconds_total", np.cumsum(rng.random(_TICKS)), mode=mode, **about)
        add("demo_num_cpus", np.full(_TICKS, 4.0), **about)
        add("demo_disk_usage_bytes", 1e10 + np.cumsum(rng.random(_TICKS)) * 1e6, **about)
        add("demo_disk_total_bytes", np.full(_TICKS, 5e11), **about)
        add("demo_batch_last_run_timestamp_seconds", np.array(times) / 1000 - 30, **about)
        add("demo_batch_last_success_timestamp_seconds", np.array(times) / 1000 - 60, **about)
        counts = np.cumsum(rng.integers(0, 5, (_TICKS, 6)), axis=0)
        for index, le in enumerate(("0.0001", "0.00025", "0.001", "0.01", "0.1", "+Inf")):
            total = counts[:, : index + 1].sum(axis=1)
            for method, status in (("GET", "200"), ("POST", "500")):
                labels = {"method": method, "path": "/api/foo", "status": status, "le": le}
                add("demo_api_request_duration_seconds_bucket", total, **labels, **about)
        for method in ("GET", "POST"):
            labels = {"method": method, "path": "/api/foo", "status": "200"}
            add("demo_api_request_duration_seconds_count", counts.sum(axis=1), **labels, **about)
            add("demo_api_request_duration_seconds_sum", np.cumsum(rng.random(_TICKS)), **labels, **about)
        intermittent = [(t, math.sin(t)) if tick % 10 < 5 else (t, STALE) for tick, t in enumerate(times)]
        series.append(({"__name__": "demo_intermittent_metric", "job": "demo", **about}, intermittent))
    return series
