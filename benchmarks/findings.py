"""How well the rules of findings judge labelled runs, and what that costs.

    scripts/bench findings [--seeds 3]

Each sick run has one thing wrong, each healthy one something that a naive rule would accuse; both are made
for several vendors, seeds and sampling intervals (`tests/findings/scenarios/`). A rule's precision counts its
warnings in all runs; its delay is the median time between the begin of what is wrong and the first judgement,
one each minute, that reports it. The cost is the CPU time of this process.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator

from tests.findings.scenarios.course import START_MS, Course, Scenario
from tests.findings.scenarios.healthy import healthy_runs
from tests.findings.scenarios.sick import sick_runs

from runvitals.findings.judge import judge
from runvitals.findings.observation import observe

INTERVALS_S = (0.5, 1.0, 2.0, 5.0, 15.0, 30.0)
STEP_S = 60.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=3, help="for each run and vendor; default: 3")
    parser.add_argument("--quick", action="store_true", help="only print")
    arguments = parser.parse_args()
    seeds = tuple(range(101, 101 + arguments.seeds))
    judge_labelled(seeds)
    print()
    measure_cost()


def judge_labelled(seeds: tuple[int, ...]) -> None:
    """Print recall, precision and delay of each rule, and how many healthy runs are accused."""
    intervals_s = tuple(INTERVALS_S[seed % len(INTERVALS_S)] for seed in seeds)
    right: dict[str, int] = defaultdict(int)
    expected: dict[str, int] = defaultdict(int)
    wrong: dict[str, int] = defaultdict(int)
    delays_s: dict[str, list[float]] = defaultdict(list)
    wrong_headlines = 0
    for scenario in sick_runs(seeds, intervals_s):
        (name,) = scenario.expected
        findings = judge(scenario.course.run())
        accused = {each.id: each for each in findings.findings if each.severity != "info"}
        expected[name] += 1
        right[name] += name in accused
        wrong_headlines += findings.verdict not in (name, *scenario.allowed)
        for other in accused.keys() - {name, *scenario.allowed}:
            wrong[other] += 1
        if name in accused and scenario.course.interval_s >= 5:
            delays_s[name] += opened_after(scenario, accused[name].from_ms)
    healthy, accused_runs = 0, 0
    for scenario in healthy_runs(seeds, intervals_s):
        accusations = {each.id for each in judge(scenario.course.run()).findings if each.severity != "info"}
        healthy, accused_runs = healthy + 1, accused_runs + bool(accusations)
        for name in accusations:
            wrong[name] += 1
    print("| rule | runs | recall | precision | median delay |")
    print("|---|---|---|---|---|")
    for name in sorted(expected.keys() | wrong.keys()):
        recall = f"{right[name] / expected[name]:.2f}" if expected[name] else ""
        precision = f"{right[name] / max(right[name] + wrong[name], 1):.2f}"
        delay = f"{statistics.median(delays_s[name]) / 60:.0f} min" if delays_s[name] else ""
        print(f"| {name} | {expected[name]} | {recall} | {precision} | {delay} |")
    print()
    print(
        f"{sum(expected.values())} sick runs, {wrong_headlines} with a wrong headline; "
        f"{accused_runs} of {healthy} healthy runs accused."
    )


def opened_after(scenario: Scenario, began_ms: int) -> Iterator[float]:
    """Yield after how many seconds a finding is first reported, judged once a minute; nothing if never."""
    (name,) = scenario.expected
    course = scenario.course
    until_s = max(STEP_S, (began_ms - START_MS) / 1000 // STEP_S * STEP_S)
    while until_s <= course.minutes * 60:
        findings = judge(course.run(until_s))
        if any(each.id == name and each.severity != "info" for each in findings.findings):
            yield max(until_s - (began_ms - START_MS) / 1000, 0.0)
            return
        until_s += STEP_S


def measure_cost() -> None:
    """Print the CPU time of judging runs of several sizes."""
    for title, hosts, devices, hours, interval_s in (
        ("1 h, 1 host × 8 GPUs, every 1 s", 1, 8, 1.0, 1.0),
        ("24 h, 4 hosts × 8 GPUs, every 1 s", 4, 8, 24.0, 1.0),
        ("24 h, 4 hosts × 8 GPUs, every 15 s", 4, 8, 24.0, 15.0),
    ):
        course = Course("h100", minutes=60 * hours, interval_s=interval_s, devices=devices, hosts=hosts)
        samples, logged = course.samples(), course.columns()
        end_ms = START_MS + int(hours * 3_600_000)
        began = time.process_time()
        run = observe(samples, logged, state="finished", started_ms=START_MS, ended_ms=end_ms, now_ms=end_ms)
        reduced = time.process_time()
        judge(run)
        judged = time.process_time()
        values = sum(len(times) for host in samples for times, _ in host.series.values())
        print(
            f"{title}: {values / 1e6:.1f} million values, {reduced - began:.3f} s of CPU to reduce them, "
            f"{judged - reduced:.3f} s to judge."
        )


if __name__ == "__main__":
    main()
