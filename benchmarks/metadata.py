"""Speed of finding, sorting and grouping runs in the metadata store: p50 and p95 of queries on both.

    scripts/bench metadata [--runs 100000] [--database sqlite|postgresql] [--keep FILE]

The runs are generated and written through the store's methods: half of them in one project, the others in
199, with 20 configuration values, 10 summary values, tags and notes each, from the words of this repository.
The CPU time is that of this process: SQLite's own, but only the client's of PostgreSQL.

Both databases sync the disk. PostgreSQL is started by this program, on a socket, with default settings.
"""

from __future__ import annotations

import argparse
import glob
import math
import os
import random
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial

from runvitals.model.ending import Ending
from runvitals.model.filter import Filter, Predicate
from runvitals.model.filter_text import parse
from runvitals.model.run_sort import RunSort
from runvitals.model.run_state import State
from runvitals.model.system_statistics import statistic_names
from runvitals.server.metadata_store import MetadataStore, open_metadata_store
from runvitals.server.runs.storage.run_statistics import ComputedStatistics
from runvitals.server.runs.storage.sections import SectionUpdate
from runvitals.server.runs.storage.writer_registration import WriterRegistration
from runvitals.server.runs.storage.writers import WriterEnd, WriterHeartbeat

T0 = 1_760_000_000_000
AT_ONCE = 4000
REPEATS = 30
OPTIMIZERS = ("adamw", "sgd", "lion", "adafactor")
MODELS = ("resnet50", "vit-b-16", "llama-7b", "gpt2-medium", "unet-3d")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--database", choices=("sqlite", "postgresql"), help="only this one")
    parser.add_argument("--keep", help="a SQLite file for the runs, which is reused if it contains them")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name, address in addresses(arguments.database, arguments.keep or f"{folder}/catalogue.db"):
            with open_metadata_store(address) as metadata_store:
                print(f"\n{name}")
                if not metadata_store.runs.count(Filter(), T0, up_to=1):
                    build(metadata_store, arguments.runs)
                if name == "sqlite":
                    print(f"  on disk {os.path.getsize(address) / arguments.runs / 1024:31.1f} KiB a run")
                measure(metadata_store, arguments.runs)


def addresses(only: str | None, file: str) -> Iterator[tuple[str, str]]:
    if only != "postgresql":
        yield "sqlite", file
    if only != "sqlite":
        from tests.server.database.postgresql import temporary_server

        yield "postgresql", temporary_server(durable=True).make("catalogue")


def build(metadata_store: MetadataStore, runs: int) -> None:
    """Write runs like a server does: writers register, facts arrive, most runs end."""
    chance = random.Random(55)
    words = sorted({word for path in glob.glob("src/**/*.py", recursive=True) for word in _words(path)})
    spent = {"join": 0.0, "facts": 0.0, "end": 0.0, "statistics": 0.0}
    for first in range(0, runs, AT_ONCE):
        joining = [_joining(chance, words, number) for number in range(first, min(first + AT_ONCE, runs))]
        with spending(spent, "join"):
            joined = metadata_store.writers.join(joining, T0 + first * 1000)
        updates = []
        for registration, numbers in zip(joining, joined, strict=True):
            started_ms = registration.started_ms or 0
            updates.append(SectionUpdate(numbers.run_id, "run", _about(chance, words), started_ms))
            updates.append(SectionUpdate(numbers.run_id, "config", _config(chance, words), started_ms))
            updates.append(SectionUpdate(numbers.run_id, "summary", _summary(chance), started_ms + 60_000))
        with spending(spent, "facts"):
            metadata_store.sections.merge(updates)
        with spending(spent, "end"):
            now_ms = T0 + first * 1000
            lasting = [chance.randrange(10**8) for _ in joined]
            signs = [
                WriterHeartbeat(w.writer_id, now_ms, now_ms + ms)
                for w, ms in zip(joined, lasting, strict=True)
            ]
            metadata_store.writers.record_heartbeats(signs)
            ended: tuple[State, ...] = ("finished", "failed", "crashed", "stopped")
            states = chance.choices(ended, (80, 10, 8, 1), k=len(joined))
            ends = [
                WriterEnd(w.writer_id, Ending(state), now_ms) for w, state in zip(joined, states, strict=True)
            ]
            metadata_store.writers.record_ends([end for end in ends if chance.random() < 0.97])
        with spending(spent, "statistics"):
            computed = [ComputedStatistics(writer.run_id, now_ms, _statistics(chance)) for writer in joined]
            for part in range(0, len(computed), 100):
                metadata_store.run_statistics.put(computed[part : part + 100])
    for what, seconds in spent.items():
        print(f"  {what:8} {seconds / runs * 1e6:31,.0f} µs a run")
    began = time.perf_counter()
    metadata_store.refresh_statistics()
    print(f"  refresh statistics {time.perf_counter() - began:21.1f} s")


class spending:
    """Append the duration of a block in seconds."""

    def __init__(self, spent: dict[str, float], what: str) -> None:
        self._spent, self._what = spent, what

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._spent[self._what] += time.perf_counter() - self._began


def _words(path: str) -> list[str]:
    with open(path) as file:
        return re.findall("[a-z]{4,12}", file.read())


def _joining(chance: random.Random, words: list[str], number: int) -> WriterRegistration:
    project = "main" if chance.random() < 0.5 else f"project-{chance.randrange(199)}"
    host = f"node{chance.randrange(512)}"
    run = f"{chance.choice(words)}-{chance.choice(words)}-{number}"
    return WriterRegistration(run, f"monitor.{host}.{number:x}", project, started_ms=T0 + number * 1000)


def _state(chance: random.Random) -> str:
    return chance.choices(("finished", "failed", "crashed", "stopped"), (80, 10, 8, 1))[0]


def _about(chance: random.Random, words: list[str]) -> dict[str, object]:
    return {
        "name": f"{chance.choice(words)} {chance.choice(words)}",
        "group": f"sweep-{chance.randrange(500)}",
        "job_type": chance.choice(("train", "eval")),
        "tags": chance.sample(("baseline", "ablation", "paper", "debug", "night"), chance.randrange(3)),
        "notes": " ".join(chance.choices(words, k=12)),
    }


def _config(chance: random.Random, words: list[str]) -> dict[str, object]:
    return {
        "lr": 10 ** -chance.uniform(1, 5),
        "batch_size": 2 ** chance.randrange(4, 11),
        "seed": chance.randrange(10**6),
        "epochs": chance.randrange(1, 300),
        "optimizer": {"name": chance.choice(OPTIMIZERS), "decay": chance.choice((0.0, 0.01, 0.1))},
        "model": {"name": chance.choice(MODELS), "layers": chance.randrange(96), "dropout": chance.random()},
        "data": f"/data/sets/{chance.choice(words)}/{chance.choice(words)}",
        "amp": chance.random() < 0.7,
        **{f"option_{number}": chance.choice(words) for number in range(4)},
        **{f"number_{number}": chance.randrange(1000) for number in range(6)},
    }


def _summary(chance: random.Random) -> dict[str, object]:
    loss = math.nan if chance.random() < 0.02 else chance.expovariate(2)
    others = {f"metric_{number}": chance.gauss(0, 1) for number in range(8)}
    return {"loss": loss, "accuracy": chance.random(), **others}


def _statistics(chance: random.Random) -> dict[str, float]:
    """All system statistics of a run with a GPU."""
    return {name: chance.uniform(0, 100) for name in statistic_names()}


def measure(metadata_store: MetadataStore, runs: int) -> None:
    """Run each query several times, with different values if it has any."""
    now_ms = T0 + runs * 1000
    chance = random.Random(7)
    rare = metadata_store.runs.page(Filter(), RunSort("name"), now_ms, limit=1000).runs
    whole = Filter()
    small, big = Filter(project="project-7"), Filter(project="main")
    newest, by_loss = RunSort(), RunSort("summary.loss", descending=False)
    pages: dict[str, Callable[[], tuple[Filter, RunSort]]] = {
        "newest": lambda: (whole, newest),
        "newest of half of them (project)": lambda: (big, newest),
        "by name": lambda: (whole, RunSort("name", descending=False)),
        "by duration": lambda: (whole, RunSort("duration_ms")),
        "by state, project of half of them": lambda: (big, RunSort("state")),
        "by summary": lambda: (whole, by_loss),
        "by summary, project of half of them": lambda: (big, by_loss),
        "by summary, small project": lambda: (small, by_loss),
        "by config text, from the end": lambda: (whole, RunSort("config.data")),
        "running": lambda: (Filter(states=("running",)), newest),
        "tag (20 %), by summary": lambda: (Filter(tags=("paper",)), by_loss),
        "config.lr > 0.09 (1 %)": lambda: (_where("config.lr > 0.09"), newest),
        "config.lr > 1e-4 (75 %), by summary": lambda: (_where("config.lr > 1e-4"), by_loss),
        "three predicates (2 %)": lambda: (_three(chance), newest),
        "three predicates, by summary": lambda: (_three(chance), by_loss),
        "text: an id": lambda: (Filter(text=chance.choice(rare).uid), newest),
        "text: a word (0.5 %)": lambda: (Filter(text=chance.choice(rare).name.split()[0]), newest),
        "text: optimizer (25 %)": lambda: (Filter(text=chance.choice(OPTIMIZERS)), newest),
        "text: in all of them": lambda: (Filter(text="/data/sets/"), newest),
        "text: two words (5 %), by summary": lambda: (Filter(text="adamw resnet50"), by_loss),
        "text: in none of them": lambda: (Filter(text=f"zq{chance.randrange(10**6)}x"), newest),
        "text: two letters": lambda: (Filter(text=chance.choice(("qx", "zz", "jk"))), newest),
    }
    print(f"  {'a page of 100':42} {'p50':>8} {'p95':>8} {'CPU':>8} ms")
    for name, ask in pages.items():
        report(name, partial(_page, metadata_store, ask, now_ms))
    after = _deep(metadata_store, by_loss, now_ms)
    report("by summary, page 50", lambda: metadata_store.runs.page(whole, by_loss, now_ms, after=after))
    _measure_tables(metadata_store, now_ms)
    print("  counts")
    report("all", lambda: metadata_store.runs.count(whole, now_ms))
    report("config.lr > 1e-4 (75 %)", lambda: metadata_store.runs.count(_where("config.lr > 1e-4"), now_ms))
    report(
        "the same, up to 10,000",
        lambda: metadata_store.runs.count(_where("config.lr > 1e-4"), now_ms, 10_000),
    )
    report("text: optimizer (25 %)", lambda: metadata_store.runs.count(Filter(text="adamw"), now_ms))
    report("projects", lambda: metadata_store.projects.all(now_ms))
    report("by state", lambda: metadata_store.runs.counts(whole, "state", now_ms))
    report("fields of a project", lambda: metadata_store.runs.fields(big, now_ms))
    numbers = [row.id for row in metadata_store.runs.page(whole, newest, now_ms).runs]
    print("  one run and many")
    report("sections of 100 runs", lambda: metadata_store.sections.read(numbers, ["summary", "config"]))
    report("find by id", lambda: metadata_store.runs.find(chance.choice(rare).uid, now_ms))
    registrations = [WriterRegistration(row.uid, "monitor.x.1") for row in rare[:100]]
    writers = [writer.writer_id for writer in metadata_store.writers.join(registrations, now_ms)]
    report("100 writers join again", lambda: metadata_store.writers.join(registrations, now_ms))
    report(
        "100 signs of life",
        lambda: metadata_store.writers.record_heartbeats(
            [WriterHeartbeat(w, now_ms, now_ms) for w in writers]
        ),
    )
    report("a summary of 10 numbers, durable", lambda: _merge(metadata_store, chance, [numbers[0]]))
    report("100 summaries of 10 numbers, durable", lambda: _merge(metadata_store, chance, numbers))


def _measure_tables(metadata_store: MetadataStore, now_ms: int) -> None:
    """The filter grammar, several sort keys, columns and groups."""
    pages = {
        "gpu.util<20 (20 %)": ("gpu.util<20", "-started_ms"),
        "gpu.util<1 (1 %), by energy": ("gpu.util<1", "-energy"),
        "by mean GPU use": ("", "-system.gpu"),
        "state, tag, not a note": ("state:failed,crashed tag:paper -note:monitor", "-started_ms"),
        "a host (0.2 %), by summary": ("host:node7", "summary.loss"),
        "hosts by a glob (2 %)": ("host:node7*", "-started_ms"),
        "name:sample (some)": ("name:sample", "-started_ms"),
        "a name that none has": ("name:zqxj", "-started_ms"),
        "negated config (25 %)": ("-config.lr>1e-4", "-started_ms"),
        "by state and summary": ("", "state,summary.loss"),
        "by group, GPU use and name": ("", "group,-system.gpu,name"),
        "the same, half of them (project)": ("project:main", "group,-system.gpu,name"),
    }
    for name, (text, order) in pages.items():
        query, sort = Filter(terms=parse(text)), RunSort.parse(order, descending=False)
        report(name, partial(metadata_store.runs.page, query, sort, now_ms))
    numbers = [row.id for row in metadata_store.runs.page(Filter(), RunSort(), now_ms).runs]
    columns = ["config.lr", "config.model.name", "summary.loss", "system.gpu", "system.energy"]
    report("5 columns of 100 runs", partial(metadata_store.runs.field_values, numbers, columns))
    print("  groups")
    by_name = {
        "totals of 2 columns": (),
        "by model (5), 2 columns": ("config.model.name",),
        "by group (500), 2 columns": ("group",),
        "by tag (5), 2 columns": ("tag",),
        "by host (512), 2 columns": ("host",),
        "by model and optimizer (20), 2 columns": ("config.model.name", "config.optimizer.name"),
    }
    for name, by in by_name.items():
        report(name, partial(metadata_store.runs.groups, Filter(), by, columns[2:4], now_ms))
    main = Filter(project="project-7")
    report("a small project by model", partial(metadata_store.runs.groups, main, columns[1:2], [], now_ms))
    report("names and values for completion", partial(metadata_store.runs.choices, Filter(), now_ms))
    report("runs with old statistics, of all", partial(metadata_store.run_statistics.due, now_ms, 500))


def _where(*predicates: str) -> Filter:
    return Filter(where=tuple(Predicate.parse(text) for text in predicates))


def _three(chance: random.Random) -> Filter:
    model, optimizer = chance.choice(MODELS), chance.choice(OPTIMIZERS)
    return _where(f"config.model.name = {model}", f"config.optimizer.name = {optimizer}", "config.lr > 1e-3")


def _page(metadata_store: MetadataStore, ask: Callable[[], tuple[Filter, RunSort]], now_ms: int) -> None:
    rows, sort = ask()
    metadata_store.runs.page(rows, sort, now_ms)


def _deep(metadata_store: MetadataStore, sort: RunSort, now_ms: int) -> str | None:
    after = None
    for _ in range(5):
        after = metadata_store.runs.page(Filter(), sort, now_ms, limit=1000, after=after).next
    return after


def _merge(metadata_store: MetadataStore, chance: random.Random, run_ids: list[int]) -> None:
    now_ms = T0 + chance.randrange(10**9, 10**10)
    metadata_store.sections.merge(
        [SectionUpdate(run_id, "summary", _summary(chance), now_ms) for run_id in run_ids]
    )


def report(name: str, ask: Callable[[], object]) -> None:
    """Print the duration of a query over `REPEATS` repetitions, after a first one."""
    ask()
    took, spent = [], []
    for _ in range(REPEATS):
        began, began_cpu = time.perf_counter(), time.process_time()
        ask()
        took.append((time.perf_counter() - began) * 1000)
        spent.append((time.process_time() - began_cpu) * 1000)
    took.sort()
    middle, high = took[len(took) // 2], took[int(len(took) * 0.95)]
    print(f"  {name:42} {middle:8.1f} {high:8.1f} {sorted(spent)[len(spent) // 2]:8.1f}")


if __name__ == "__main__":
    main()
