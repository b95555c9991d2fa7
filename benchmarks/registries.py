"""Time of the lists and pages of registries, with 3, 300 and 10,000 rows.

    scripts/bench registries [--quick]

A team with that many registries; one of them has as many collections, of which one has as many versions,
made by three runs. The lists are asked for one after the other, 50 rows a page; a page is loaded until its
rows are shown. Every figure is the least of several. `--quick` leaves out the last size and records nothing.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import httpx
from sqlalchemy import Connection, insert, select
from tests.server.access.organisation import TEAM, ServedOrganisation, served_organisation
from tests.server.browser import Browser

from runvitals.server.database.tables.artifacts import (
    artifact_alias,
    artifact_collection,
    artifact_membership,
    artifact_version,
)
from runvitals.server.database.tables.registry import model_version
from runvitals.server.database.tables.runs import project, run

T0: Final = 1_790_000_000_000
TIMES: Final = 15
_SHOWN: Final = (
    "document.querySelector('table.table tbody tr') !== null && !document.body.innerText.includes('Loading')"
)
LISTS: Final = (
    ("registries", ""),
    ("registries, changed last", "?sort=-changed_ms"),
    ("collections", "/r{n}-0/collections"),
    ("collections, a text", "/r{n}-0/collections?text=model-2"),
    ("collections, tag and owner", "/r{n}-0/collections?tag=vision&owner=carol"),
    ("versions", "/r{n}-0/collections/model-0/versions"),
    ("versions, two metrics", "/r{n}-0/collections/model-0/versions?field=summary.loss&field=config.lr"),
    ("versions, largest", "/r{n}-0/collections/model-0/versions?sort=-bytes"),
    ("versions, tag and author", "/r{n}-0/collections/model-0/versions?tag=good&author=carol"),
    ("the last page of versions", "/r{n}-0/collections/model-0/versions?after={last}"),
)
PAGES: Final = (
    ("registries", "?q=r{n}-"),
    ("collections", "/r{n}-0"),
    ("versions", "/r{n}-0/collections/model-0"),
    ("two versions compared", "/r{n}-0/collections/model-0?compare=1,2"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="at most 300 rows, nothing recorded")
    sizes = (3, 300) if parser.parse_args().quick else (3, 300, 10_000)
    with tempfile.TemporaryDirectory(prefix="runvitals-bench-") as folder:
        for line in measure(Path(folder), sizes):
            print(line, flush=True)


def measure(folder: Path, sizes: tuple[int, ...]) -> Iterator[str]:
    """Markdown with the results."""
    with served_organisation(folder) as served:
        for size in sizes:
            served.metadata_store.in_one_transaction(lambda size=size: fill(served, size))  # type: ignore[misc]
        served.rights_changed()
        yield "| ms until | " + " | ".join(f"{size:,} rows" for size in sizes) + " |"
        yield "|---|" + "---|" * len(sizes)
        with httpx.Client(base_url=served.url, headers=served.headers("carol"), timeout=60) as client:
            for name, path in LISTS:
                yield row(f"list: {name}", [asked_ms(client, place(path, size)) for size in sizes])
        with Browser() as browser:
            browser.base = served.url
            browser.call(
                "Network.setCookie", name="runvitals_session", value=served.sign_in("carol"), url=served.url
            )
            for name, path in PAGES:
                yield row(f"page: {name}", [shown_ms(browser, place(path, size)) for size in sizes])


def row(name: str, figures: list[float]) -> str:
    """A row of the table."""
    return f"| {name} | " + " | ".join(f"{figure:.0f}" for figure in figures) + " |"


def place(path: str, size: int) -> str:
    """A path with the names of a size."""
    return path.format(n=size, last=max(0, size - 50))


def asked_ms(client: httpx.Client, path: str) -> float:
    """Time of a list."""
    address = f"/api/v1/teams/{TEAM}/registries{path}"

    def ask() -> None:
        client.get(address).raise_for_status()

    return least_ms(ask)


def shown_ms(browser: Browser, path: str) -> float:
    """Time until a page has its rows."""

    def load() -> None:
        browser.open(f"/{TEAM}/-/registries{path}")
        browser.wait(_SHOWN)

    return least_ms(load)


def least_ms(work: Callable[[], None]) -> float:
    """The least of some times."""
    times = []
    for _ in range(TIMES):
        began = time.perf_counter()
        work()
        times.append(1000 * (time.perf_counter() - began))
    return min(times)


def fill(served: ServedOrganisation, size: int) -> None:
    """Store registries, collections and versions, as many as `size` of each."""
    store = served.metadata_store
    team_id = served.accounts.teams.by_name(TEAM).id
    source_id = store.projects.id("team")
    store.registries._database.write(lambda connection: _fill(connection, size, team_id, source_id))


def _fill(connection: Connection, size: int, team_id: int, source_id: int) -> None:
    def add(table: Any, rows: list[dict[str, Any]]) -> list[int]:
        connection.execute(insert(table), rows)
        added = select(table.c.id).order_by(table.c.id.desc()).limit(len(rows))
        return sorted(connection.execute(added).scalars())

    place = {"entity_id": team_id, "visibility": "team", "overview": "", "description": "What it is for"}
    registries = add(
        project,
        [
            {**place, "name": f"wandb-registry-r{size}-{number}", "created_ms": T0 + number}
            for number in range(size)
        ],
    )
    usual = {"type": "model", "description": "What it is for", "created_ms": T0}
    (sequence,) = add(
        artifact_collection,
        [
            {
                **usual,
                "project_id": source_id,
                "kind": "sequence",
                "name": f"source-{size}",
                "tags": "[]",
                "next_version": 2 * size,
                "updated_ms": T0,
            }
        ],
    )
    collections = add(
        artifact_collection,
        [
            {
                **usual,
                "project_id": registries[0],
                "kind": "portfolio",
                "name": f"model-{number}",
                "tags": json.dumps(["vision"] if number % 5 == 0 else []),
                "next_version": size if number == 0 else 1,
                "updated_ms": T0 + number * 7919 % 1_000_000,
            }
            for number in range(size)
        ],
    )
    made_by = list(connection.execute(select(run.c.id).where(run.c.project_id == source_id)).scalars())
    versions = add(
        artifact_version,
        [
            {
                "collection_id": sequence,
                "version": number,
                "state": "committed",
                "digest": f"{number:032x}",
                "manifest_kind": "full",
                "description": "",
                "metadata": json.dumps({"accuracy": number / size}),
                "tags": json.dumps(["good"] if number % 10 == 0 else []),
                "aliases": "[]",
                "run_id": made_by[number % len(made_by)],
                "bytes": 1000 * number,
                "files": 1,
                "created_ms": T0 + number,
                "updated_ms": T0 + number,
            }
            for number in range(2 * size)
        ],
    )
    places = [(collections[0], number, versions[number]) for number in range(size)]
    places += [(collections[number], 0, versions[size + number]) for number in range(1, size)]
    members = add(
        artifact_membership,
        [
            {"collection_id": collection, "number": number, "version_id": version, "created_ms": T0 + number}
            for collection, number, version in places
        ],
    )
    said = {"stage": "None", "source": "", "location": "", "properties": "{}", "changed_ms": T0}
    connection.execute(
        insert(model_version),
        [
            {
                **said,
                "membership_id": member,
                "author": ("carol", "bob")[member % 2],
                "downloads": member % 50,
            }
            for member in members
        ],
    )
    newest = {collection: member for (collection, _, _), member in zip(places, members, strict=True)}
    connection.execute(
        insert(artifact_alias),
        [
            {"collection_id": collection, "alias": "latest", "membership_id": member}
            for collection, member in newest.items()
        ],
    )


if __name__ == "__main__":
    main()
