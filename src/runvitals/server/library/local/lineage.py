"""What the runs of a data folder used and made, as a graph."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from runvitals.model.artifacts import ArtifactVersion
from runvitals.model.run import Run
from runvitals.server.artifacts.lineage_walk import LineageEnds, NodeKey


class JournalLineage:
    """The links between runs and the versions of artifacts, and what is shown of both.

    Args:
        versions: all of the data folder.
        runs: those outside the trash; others have no names.

    Example:
        >>> graph = JournalLineage(versions, runs)
        >>> graph.before([graph.run("9f3k2m1p")], 100)
        [NodeKey('version', 0)]
    """

    def __init__(self, versions: Iterable[ArtifactVersion], runs: Iterable[Run]) -> None:
        self._versions = list(versions)
        self._numbers_of_versions = {_name(version): at for at, version in enumerate(self._versions)}
        self._runs: Mapping[str, Run] = {run.id: run for run in runs}
        self._ids: list[str] = []
        self._numbers: dict[str, int] = {}
        self._before: dict[NodeKey, dict[NodeKey, None]] = defaultdict(dict)
        self._after: dict[NodeKey, dict[NodeKey, None]] = defaultdict(dict)
        for number, version in enumerate(self._versions):
            node = NodeKey("version", number)
            if version.run is not None:
                self._link(self.run(version.run), node)
            for run_id in version.used_by:
                self._link(node, self.run(run_id))

    def run(self, run_id: str) -> NodeKey:
        """Return the node of a run."""
        number = self._numbers.setdefault(run_id, len(self._ids))
        if number == len(self._ids):
            self._ids.append(run_id)
        return NodeKey("run", number)

    def version(self, version: ArtifactVersion) -> NodeKey | None:
        """Return the node of a version; None if there is none any more."""
        number = self._numbers_of_versions.get(_name(version))
        return None if number is None else NodeKey("version", number)

    def _link(self, source: NodeKey, target: NodeKey) -> None:
        self._after[source][target] = None
        self._before[target][source] = None

    def before(self, nodes: Collection[NodeKey], limit: int) -> list[NodeKey]:
        """Return what some nodes were made from."""
        return list({near: None for node in nodes for near in self._before.get(node, ())})[:limit]

    def after(self, nodes: Collection[NodeKey], limit: int) -> list[NodeKey]:
        """Return what was made from some nodes."""
        return list({near: None for node in nodes for near in self._after.get(node, ())})[:limit]

    def edges(self, nodes: Collection[NodeKey], limit: int) -> list[tuple[NodeKey, NodeKey]]:
        """Return which of some nodes were made from which."""
        among = set(nodes)
        edges = [(node, near) for node in nodes for near in self._after.get(node, ()) if near in among]
        return edges[:limit]

    def ends(self, nodes: Collection[NodeKey]) -> LineageEnds:
        """Return the nodes that have neighbours besides each other."""
        among = set(nodes)
        before, after = (
            frozenset(node for node in among if links.get(node, {}).keys() - among)
            for links in (self._before, self._after)
        )
        return LineageEnds(before, after)

    def readable_of(self, nodes: Collection[NodeKey]) -> set[NodeKey]:
        """Return the nodes but for runs in the trash."""
        return {node for node in nodes if node.kind == "version" or self._ids[node.id] in self._runs}

    def shown(self, node: NodeKey) -> dict[str, Any]:
        """Return what is shown of a node."""
        if node.kind == "run":
            run = self._runs[self._ids[node.id]]
            return {
                "entity": None,
                "project": run.project,
                "run": run.id,
                "name": run.name,
                "group": run.group or "",
                "job_type": run.job_type or "",
                "started_ms": run.started_ms,
            }
        version = self._versions[node.id]
        return {
            "entity": None,
            "project": version.project,
            "name": version.name,
            "version": version.version,
            "aliases": list(version.aliases),
            "type": version.type,
            "bytes": version.bytes,
            "created_ms": version.created_ms,
            "deleted": False,
            "links": [],
        }


def _name(version: ArtifactVersion) -> tuple[str, str, int]:
    return version.project, version.name, version.version
