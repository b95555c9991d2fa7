"""Reports written by programs: the public name of `runvitals.readers.servers.reports`."""

from runvitals.readers.servers.reports.blocks import Markdown, Panel, Panels, Picture, RunSet
from runvitals.readers.servers.reports.report import Report, ReportChanged

__all__ = ["Markdown", "Panel", "Panels", "Picture", "Report", "ReportChanged", "RunSet"]
