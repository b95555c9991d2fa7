"""Sweeps and their agents, as wandb's clients see them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from runvitals.base.numbers import parse_integer
from runvitals.model.filter import Labelled, Term, TextPattern
from runvitals.server.access.actions import Action
from runvitals.server.access.resources import ProjectItem
from runvitals.server.doors.wandb.context import GraphQLContext, node_id, number_of
from runvitals.server.doors.wandb.executor import InvalidArgument
from runvitals.server.doors.wandb.resolvers import Resolvers
from runvitals.server.doors.wandb.run_nodes import ProjectNode, iso_time
from runvitals.server.doors.wandb.run_reads import MAX_PAGE, of_project, page_of_runs
from runvitals.server.sweeps.commands import LOST_MS
from runvitals.server.sweeps.configuration import shown_configuration
from runvitals.server.sweeps.storage.rows import OVER, Sweep, SweepAgent

if TYPE_CHECKING:
    from runvitals.server.doors.wandb.context import Info

SWEEPS: Final = Resolvers("sweeps")
_MAX_NUMBER: Final = 2**53
_MAX_INT: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class SweepNode:
    """A sweep, for the type `Sweep`."""

    row: Sweep
    project: ProjectNode

    @property
    def id(self) -> str:
        """The id of the sweep in GraphQL."""
        return node_id("Sweep", self.row.id)

    @property
    def name(self) -> str:
        """The name in the sweep's address."""
        return self.row.name

    @property
    def display_name(self) -> str | None:
        """The name that users gave; None without one."""
        return self.row.display_name

    @property
    def description(self) -> str | None:
        """The description; None without one."""
        return self.row.description

    @property
    def method(self) -> str:
        """The way parameters are chosen: `grid`, `random` or `bayes`."""
        return shown_configuration(self.row.configuration).method

    @property
    def state(self) -> str:
        """The state in capitals, as wandb calls it."""
        return self.row.state.upper()

    @property
    def config(self) -> str:
        """The configuration as it was sent: YAML or JSON."""
        return self.row.source

    @property
    def created_at(self) -> str:
        """When the sweep was created, in UTC."""
        return iso_time(self.row.created_ms)

    @property
    def updated_at(self) -> str:
        """When the sweep was last changed, in UTC."""
        return iso_time(self.row.changed_ms)

    @property
    def early_stop_job_running(self) -> bool:
        """False: there is no such job."""
        return False

    @property
    def run_count_expected(self) -> int | None:
        """The number of runs that the sweep is to have; None without a limit."""
        expected = shown_configuration(self.row.configuration).expected_runs
        return None if expected is None else min(expected, _MAX_INT)


@dataclass(frozen=True, slots=True)
class AgentNode:
    """An agent, for the type `Agent`."""

    row: SweepAgent
    sweep: SweepNode
    total_runs: int
    state: str

    @property
    def id(self) -> str:
        """The id of the agent in GraphQL."""
        return node_id("Agent", self.row.id)

    @property
    def name(self) -> str:
        """The same as `id`."""
        return self.id

    @property
    def host(self) -> str:
        """The machine that the agent runs on."""
        return self.row.host

    @property
    def created_at(self) -> str:
        """When the agent registered, in UTC."""
        return iso_time(self.row.created_ms)

    @property
    def heartbeat_at(self) -> str:
        """When the agent was last heard of, in UTC."""
        return iso_time(self.row.heard_ms)


def find_sweep(context: GraphQLContext, project: ProjectNode, name: str) -> SweepNode | None:
    """Return a sweep of a project; None if there is none that the requester may read."""
    row = context.metadata_store.sweeps.sweeps.named(project.number, name)
    if row is None or not may_read(context, project):
        return None
    return SweepNode(row, project)


def may_read(context: GraphQLContext, project: ProjectNode) -> bool:
    """Return whether the requester may read the sweeps of a project."""
    if project.resource is None:
        return True
    item = ProjectItem("sweep", 0, project.resource)
    return context.access.may(context.requester, Action.SWEEP_READ, item)


@SWEEPS.field("Project", "sweep")
def sweep(node: ProjectNode, info: Info, sweep_name: str) -> SweepNode | None:
    """Return a sweep by its name."""
    return find_sweep(info.context, node, sweep_name)


@SWEEPS.field("Project", "totalSweeps")
def total(node: ProjectNode, info: Info) -> int:
    """Return how many sweeps the project has."""
    context = info.context
    if not may_read(context, node):
        return 0
    return context.metadata_store.sweeps.sweeps.of_project(node.number, limit=0)[1]


@SWEEPS.field("Project", "sweeps")
def sweeps(
    node: ProjectNode,
    info: Info,
    after: str | None = None,
    first: int | None = None,
    filters: str | None = None,
) -> dict[str, Any]:
    """Return a page of the sweeps of the project, the newest first."""
    context = info.context
    if filters not in (None, "", "{}", "null"):
        raise InvalidArgument("sweeps cannot be filtered: leave filters out")
    begin = parse_integer(after, _MAX_NUMBER) if after else 0
    if begin is None:
        raise InvalidArgument("invalid after: expected the `endCursor` of a previous page")
    limit = max(1, min(MAX_PAGE, 50 if first is None else first))
    rows: list[Sweep] = []
    count = 0
    if may_read(context, node):
        rows, count = context.metadata_store.sweeps.sweeps.of_project(node.number, begin, limit)
    context.count_reads(len(rows))
    end = begin + len(rows)
    return {
        "edges": [
            {"node": SweepNode(row, node), "cursor": str(index)} for index, row in enumerate(rows, begin + 1)
        ],
        "pageInfo": {
            "endCursor": str(end),
            "hasNextPage": end < count,
            "hasPreviousPage": begin > 0,
            "startCursor": None,
        },
    }


@SWEEPS.field("Sweep", "runCount")
def run_count(node: SweepNode, info: Info) -> int:
    """Return how many runs the sweep has."""
    return info.context.metadata_store.sweeps.runs.count(node.row.id)


@SWEEPS.field("Sweep", "bestLoss")
def best_loss(node: SweepNode, info: Info) -> float | None:
    """Return the best value of the metric."""
    metric = shown_configuration(node.row.configuration).metric
    if metric is None:
        return None
    return info.context.metadata_store.sweeps.runs.best_value(node.row.id, metric.minimizes)


@SWEEPS.field("Sweep", "heartbeatAt")
def heartbeat_at(node: SweepNode, info: Info) -> str | None:
    """Return when an agent was last heard from."""
    agents = info.context.metadata_store.sweeps.agents.of_sweep(node.row.id)
    return iso_time(max(agent.heard_ms for agent, _ in agents)) if agents else None


@SWEEPS.field("Sweep", "runs")
def runs(
    node: SweepNode,
    info: Info,
    first: int | None = None,
    after: str | None = None,
    order: str | None = None,
) -> dict[str, Any]:
    """Return a page of the runs that have begun."""
    of_sweep = Term(Labelled("sweep", (TextPattern(node.name),)))
    filter_ = of_project(info.context, node.project, of_sweep)
    return page_of_runs(info, node.project, filter_, order, MAX_PAGE if first is None else first, after)


@SWEEPS.field("Sweep", "agents")
def agents(node: SweepNode, info: Info) -> dict[str, Any]:
    """Return the agents that ever started runs of the sweep."""
    context = info.context
    agents = context.metadata_store.sweeps.agents.of_sweep(node.row.id)
    context.count_rows(len(agents))
    lost_before_ms = context.now_ms() - LOST_MS
    return {
        "edges": [
            {"node": AgentNode(row, node, count, _state(row, node, lost_before_ms))} for row, count in agents
        ]
    }


@SWEEPS.field("Sweep", "agent")
def agent(node: SweepNode, info: Info, agent_name: str) -> AgentNode | None:
    """Return an agent of the sweep by its name."""
    context = info.context
    row = context.metadata_store.sweeps.agents.get(number_of("Agent", agent_name))
    if row is None or row.sweep_id != node.row.id:
        return None
    count = len(context.metadata_store.sweeps.runs.of_agent(row.id, _MAX_INT))
    return AgentNode(row, node, count, _state(row, node, context.now_ms() - LOST_MS))


def _state(row: SweepAgent, node: SweepNode, lost_before_ms: int) -> str:
    if row.heard_ms < lost_before_ms:
        return "FINISHED" if node.row.state in OVER else "CRASHED"
    return "RUNNING"


@SWEEPS.field("Agent", "runs")
def agent_runs(
    node: AgentNode,
    info: Info,
    after: str | None = None,
    before: str | None = None,
    first: int | None = None,
    last: int | None = None,
    order: str | None = None,
) -> dict[str, Any]:
    """Return a page of the runs that the agent has started."""
    context = info.context
    started = context.metadata_store.sweeps.runs.of_agent(node.row.id, MAX_PAGE)
    numbers = [run.run_id for run in started if run.run_id is not None]
    rows = context.metadata_store.runs.get(numbers, context.now_ms())
    term = Term(Labelled("id", tuple(TextPattern(row.uid) for row in rows.values()) or (TextPattern(""),)))
    filter_ = of_project(context, node.sweep.project, term)
    return page_of_runs(info, node.sweep.project, filter_, order, first, after)
