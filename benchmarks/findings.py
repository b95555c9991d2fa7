"""How well the rules of findings judge labelled runs, and what that costs.

    scripts/bench findings [--seeds 3] [--only labelled|whole|live]

Each sick run has one thing wrong, each healthy one something that a naive rule would accuse; both are made
for several vendors, seeds and sampling intervals (`tests/findings/scenarios/`). A rule's precision counts its
warnings in all runs; its delay is the median time from the begin of what is wrong until the finding opens
while the run goes on. Healthy runs are judged at their end and while they go on. Costs are CPU
time of one thread.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tests.findings.scenarios.course import START_MS, Course
from tests.findings.scenarios.healthy import healthy_runs
from tests.findings.scenarios.live import LOOK_S, judgements
from tests.findings.scenarios.sick import sick_runs
from tests.readers.journals.journals import Monitor, Trainer
from tests.server.findings.live_runs import LiveRuns

from runvitals.findings.judge import judge
from runvitals.findings.observation import observe
from runvitals.readers.journals.live_findings import LiveFindings
from runvitals.readers.journals.reader import RunReader

INTERVALS_S = (0.5, 1.0, 2.0, 5.0, 15.0, 30.0)
LIVE_S = 5.0
"""Runs that are sampled more often than so are not judged live here: making their samples takes too long."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=6, help="for each run and vendor; default: 6")
    parser.add_argument("--only", choices=("labelled", "whole", "live"), help="a part")
    parser.add_argument("--quick", action="store_true", help="only print")
    arguments = parser.parse_args()
    seeds = tuple(range(102, 102 + arguments.seeds))
    parts = {"labelled": lambda: judge_labelled(seeds), "whole": measure_judgements, "live": measure_live}
    for name, measure in parts.items():
        if arguments.only in (None, name):
            measure()
            print()


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
        if name in accused and scenario.course.interval_s >= LIVE_S:
            opened = [at_ms for at_ms, id in accusations(scenario.course) if id == name]
            delays_s[name] += [max(at_ms - accused[name].from_ms, 0) / 1000 for at_ms in opened[:1]]
    healthy, at_end, live = judge_healthy(seeds, intervals_s, wrong)
    print("| rule | runs | recall | precision | median delay |")
    print("|---|---|---|---|---|")
    for name in sorted(expected.keys() | wrong.keys()):
        recall = f"{right[name] / expected[name]:.2f}" if expected[name] else ""
        precision = f"{right[name] / max(right[name] + wrong[name], 1):.2f}"
        delay = f"{statistics.median(delays_s[name]) / 60:.0f} min" if delays_s[name] else ""
        print(f"| {name} | {expected[name]} | {recall} | {precision} | {delay} |")
    print()
    print(
        f"{sum(expected.values())} sick runs, {wrong_headlines} with a wrong headline; {at_end} of {healthy} "
        f"healthy runs accused at their end, {live[0]} of {live[1]} while they went on."
    )


def judge_healthy(
    seeds: tuple[int, ...], intervals_s: tuple[float, ...], wrong: dict[str, int]
) -> tuple[int, int, tuple[int, int]]:
    """Return how many healthy runs there are, how many were accused at the end, and live, of how many."""
    count = at_end = live = judged_live = 0
    for scenario in healthy_runs(seeds, intervals_s):
        names = {each.id for each in judge(scenario.course.run()).findings if each.severity != "info"}
        count, at_end = count + 1, at_end + bool(names)
        for name in names:
            wrong[name] += 1
        if scenario.course.interval_s >= LIVE_S:
            opened = [name for _, name in accusations(scenario.course)]
            judged_live, live = judged_live + 1, live + bool(opened)
            if opened and not names:
                print(f"accused only while it went on: {scenario.name}: {', '.join(sorted(set(opened)))}")
    return count, at_end, (live, judged_live)


def accusations(course: Course) -> Iterator[tuple[int, str]]:
    """Judge a run while it goes on: when which warnings or worse opened first."""
    known: set[str] = set()
    for now_ms, findings in judgements(course):
        for finding in findings.findings:
            if finding.severity != "info" and finding.id not in known:
                known.add(finding.id)
                yield now_ms, finding.id


def measure_judgements() -> None:
    """Print the CPU time of judging whole runs of several sizes."""
    print("| run | values, millions | CPU to reduce, s | to judge, s | together, s |")
    print("|---|---|---|---|---|")
    for hosts, devices, hours, interval_s in (
        (1, 8, 1.0, 1.0),
        (4, 8, 24.0, 1.0),
        (4, 8, 24.0, 15.0),
        (64, 8, 1.0, 15.0),
        (128, 8, 1.0, 15.0),
    ):
        course = Course("h100", minutes=60 * hours, interval_s=interval_s, devices=devices, hosts=hosts)
        samples, logged = course.samples(), course.columns()
        end_ms = START_MS + int(hours * 3_600_000)
        began = time.thread_time()
        run = observe(samples, logged, state="finished", started_ms=START_MS, ended_ms=end_ms, now_ms=end_ms)
        reduced = time.thread_time()
        judge(run)
        judged = time.thread_time()
        values = sum(len(times) for host in samples for times, _ in host.series.values())
        print(
            f"| {hours:g} h, {hosts * devices} devices, every {interval_s:g} s | {values / 1e6:.1f} "
            f"| {reduced - began:.3f} | {judged - reduced:.3f} | {judged - began:.3f} |"
        )


def measure_live() -> None:
    """Print what runs cost while they go on."""
    measure_samples()
    print()
    measure_server()


def measure_samples() -> None:
    """Print the CPU time of a sample of a local run that somebody follows, besides reading its journal."""
    for interval_s in (1.0, 15.0):
        course = Course("h100", minutes=24 * 60, interval_s=interval_s)
        (host,) = course.samples()
        columns = np.column_stack([values for _, values in host.series.values()])
        with tempfile.TemporaryDirectory() as folder:
            monitor = Monitor(Path(folder), "followed", host.name, START_MS, interval_s)
            monitor.info(START_MS, machine=host.machine)
            trainer = Trainer(Path(folder), "followed", host.name, rank=0, start_ms=START_MS)
            reader = RunReader("followed", folder)
            live, spent, judgements = LiveFindings(reader), 0.0, 0
            rows = round(LOOK_S / interval_s)
            for first in range(0, len(course.t), rows):
                for row, values in enumerate(columns[first : first + rows].tolist(), first):
                    now_ms = START_MS + int(course.t[row] * 1000)
                    monitor.sample(now_ms, dict(zip(host.series, values, strict=True)))
                    trainer.log(now_ms, row, **{"train/loss": 0.5})
                reader.poll()
                facts = reader.run(now_ms)
                began = time.thread_time()
                observed = live.observe(facts, now_ms)
                if observed is not None:
                    live.judge(observed, now_ms)
                    judgements += 1
                spent += time.thread_time() - began
        print(
            f"A local run of 24 h sampled every {interval_s:g} s, {len(host.series)} values, that somebody "
            f"follows: {1e6 * spent / len(course.t):.1f} µs a sample, {judgements} judgements."
        )


def measure_server(hosts: int = 1000, hung: int = 10, hang_min: int = 60, minutes: int = 105) -> None:
    """Print what many runs that start together cost a server, and how soon it notices that some hang.

    All samples go through its store; the clock is moved by hand.
    """
    course = Course("h100", minutes=minutes, interval_s=10.0)
    hanging = Course("h100", minutes=minutes, interval_s=10.0)
    hanging.rest(hanging.between(hang_min))
    hanging.stop_steps(hang_min)
    with tempfile.TemporaryDirectory() as folder:
        runs = LiveRuns(Path(folder), cpu_clock=time.thread_time)
        runs.add((f"well-{number}" for number in range(hosts - hung)), course)
        runs.add((f"hung-{number}" for number in range(hung)), hanging)
        print("| minutes | share of a core | judgements |")
        print("|---|---|---|")
        for first in range(0, minutes, 15):
            spent_s, judged = runs.turns_s, len(runs.findings.judged)
            runs.go_on(15)
            load = (runs.turns_s - spent_s) / (15 * 60)
            print(f"| {first} to {first + 15} | {100 * load:.2f} % | {len(runs.findings.judged) - judged} |")
        names = [f"hung-{number}" for number in range(hung)]
        begin_ms = START_MS + hang_min * 60_000
        noticed = [
            next(
                at_ms
                for at_ms, run_id in runs.findings.judged
                if run_id == runs.ids[name] and at_ms > begin_ms
            )
            for name in names
        ]
        delays = sorted((at_ms - begin_ms) / 1000 for at_ms in noticed)
        opened = sorted(
            at_min - hang_min
            for name in names
            for kind, _, at_min in runs.changes(name, "hang")[:1]
            if kind == "FindingOpened"
        )
        runs.close()
    print()
    print(
        f"{hosts:,} runs of a host of {len(course.samples()[0].series)} values each started together, and "
        f"{hung} of them hang after {hang_min} min. They are judged {delays[0]:.0f} to {delays[-1]:.0f} s "
        f"later, and `hang` opens after {opened[0]:.0f} to {opened[-1]:.0f} min, in {len(opened)} of them: "
        "its criterion is met after half an hour."
    )


if __name__ == "__main__":
    main()
