"""What goes with a user who leaves a team or the server: stars, follows and shares. What they wrote stays."""

from __future__ import annotations

from sqlalchemy import Connection, delete, select

from runvitals.server.database.tables.reports import (
    report,
    report_follow,
    report_reaction,
    report_share,
    report_star,
)
from runvitals.server.database.tables.runs import project


def leave_reports_of_team(connection: Connection, user_id: int, team_id: int) -> None:
    """Remove the follows and shares of a user who leaves a team."""
    reports = select(report.c.id).join(project, project.c.id == report.c.project_id)
    theirs = reports.where(project.c.entity_id == team_id)
    for table in (report_follow, report_share):
        mine = (table.c.user_id == user_id, table.c.report_id.in_(theirs))
        connection.execute(delete(table).where(*mine))


def leave_reports(connection: Connection, user_id: int) -> None:
    """Remove what a deleted user had to do with reports, except what they wrote."""
    for table in (report_follow, report_share, report_star, report_reaction):
        connection.execute(delete(table).where(table.c.user_id == user_id))
