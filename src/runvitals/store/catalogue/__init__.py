"""The catalogue: projects, runs, writers, metrics, devices, facts, tags, events and tokens.

Everything about runs but their samples, in SQLite or PostgreSQL. It hands out the numbers that the
SampleStore knows metrics and series by.

Example:
    >>> catalogue = open_catalogue("/var/lib/runvitals/catalogue.db")
    >>> [joined] = catalogue.writers.join([Joining("brave-otter-1", "monitor.node1.19f3a", "digits")], now_ms)
    >>> catalogue.sections.merge([Update(joined.run_id, "config", {"lr": 0.1}, now_ms)])
    >>> wanted = Filter(project="digits", where=(Predicate.parse("config.lr > 0.01"),))
    >>> [run.uid for run in catalogue.runs.page(wanted, Sort("started_ms"), now_ms).runs]
    ['brave-otter-1']
"""

from runvitals.store.catalogue.catalogue import Catalogue, open_catalogue
from runvitals.store.catalogue.console import Output, Printed
from runvitals.store.catalogue.database import CatalogueError
from runvitals.store.catalogue.devices import Device
from runvitals.store.catalogue.events import Event
from runvitals.store.catalogue.filters import Filter, Predicate
from runvitals.store.catalogue.joining import Joined, Joining
from runvitals.store.catalogue.listing import Page, Sort
from runvitals.store.catalogue.locking import UnknownRun
from runvitals.store.catalogue.metrics import Schema
from runvitals.store.catalogue.projects import Project, UnknownProject
from runvitals.store.catalogue.rows import RunRow
from runvitals.store.catalogue.sections import RunSections, Update
from runvitals.store.catalogue.states import Ending, Host, Writer, hosts
from runvitals.store.catalogue.tokens import Token
from runvitals.store.catalogue.writers import Ended, Heard, Process

__all__ = [
    "Catalogue",
    "CatalogueError",
    "Device",
    "Ended",
    "Ending",
    "Event",
    "Filter",
    "Heard",
    "Host",
    "Joined",
    "Joining",
    "Output",
    "Page",
    "Predicate",
    "Printed",
    "Process",
    "Project",
    "RunRow",
    "RunSections",
    "Schema",
    "Sort",
    "Token",
    "UnknownProject",
    "UnknownRun",
    "Update",
    "Writer",
    "hosts",
    "open_catalogue",
]
