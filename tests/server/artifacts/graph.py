"""Graphs of runs and versions for tests."""

from __future__ import annotations

from runvitals.server.metadata_store import MetadataStore
from tests.server.database.artifacts.making import T0, logged


def run_number(store: MetadataStore, uid: str) -> int:
    """The number of a run."""
    row = store.runs.find(uid, T0)
    assert row is not None
    return row.id


def link_runs(store: MetadataStore, project: str, edges: str) -> dict[str, int]:
    """Store what runs used and made: `data > run-a > model`; returns the numbers of the versions by name.

    Names that begin with `run` are runs, which exist; others are artifacts, of which a version is logged.
    """
    project_id = store.projects.id(project)
    versions: dict[str, int] = {}
    for chain in edges.split(";"):
        names = [name.strip() for name in chain.split(">")]
        for name, before in zip(names, [None, *names], strict=False):
            if _is_run(name):
                number = run_number(store, name)
                if before is not None:
                    store.artifacts.lineage.add(versions[before], number, "", T0)
            elif name not in versions:
                maker = None if before is None else run_number(store, before)
                content = {"content": f"{project}/{name}".encode()}
                versions[name] = logged(store, project_id, content, name, run_id=maker).id
    return versions


def _is_run(name: str) -> bool:
    return name.startswith("run")
