"""The metadata store: projects, runs, writers, metrics, devices, facts, tags, events and tokens.

It holds everything about runs except their samples, in SQLite or PostgreSQL, and assigns the integer ids
under which the sample store keeps metrics and series.

Example:
    >>> metadata_store = open_metadata_store("/var/lib/runvitals/catalogue.db")
    >>> otter = WriterRegistration("brave-otter-1", "monitor.node1.19f3a", "digits")
    >>> [joined] = metadata_store.writers.join([otter], now_ms)
    >>> metadata_store.sections.merge([SectionUpdate(joined.run_id, "config", {"lr": 0.1}, now_ms)])
    >>> wanted = Filter(project="digits", where=(Predicate.parse("config.lr > 0.01"),))
    >>> [run.uid for run in metadata_store.runs.page(wanted, RunSort("started_ms"), now_ms).runs]
    ['brave-otter-1']
"""

from runvitals.model.filter import Filter, Predicate
from runvitals.model.run_sort import RunSort
from runvitals.store.metadata.console import ConsoleLine, ConsolePage
from runvitals.store.metadata.events import StoredEvent
from runvitals.store.metadata.metadata_store import MetadataStore, open_metadata_store
from runvitals.store.metadata.metrics import KeyList
from runvitals.store.metadata.projects import StoredProject
from runvitals.store.metadata.run_rows import RunPage, RunRow
from runvitals.store.metadata.run_states import StoredWriter, hosts
from runvitals.store.metadata.sections import RunSections, SectionUpdate
from runvitals.store.metadata.tokens import AccessToken
from runvitals.store.metadata.writer_registration import RegisteredWriter, WriterRegistration
from runvitals.store.metadata.writers import StoredProcess, WriterEnd, WriterHeartbeat

__all__ = [
    "AccessToken",
    "ConsoleLine",
    "ConsolePage",
    "Filter",
    "KeyList",
    "MetadataStore",
    "Predicate",
    "RegisteredWriter",
    "RunPage",
    "RunRow",
    "RunSections",
    "RunSort",
    "SectionUpdate",
    "StoredEvent",
    "StoredProcess",
    "StoredProject",
    "StoredWriter",
    "WriterEnd",
    "WriterHeartbeat",
    "WriterRegistration",
    "hosts",
    "open_metadata_store",
]
