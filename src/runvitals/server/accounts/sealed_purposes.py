"""What secrets of teams and users are encrypted for: each opens as that of its owner only."""

from __future__ import annotations


def team_secret_purpose(team_id: int, name: str) -> str:
    """Of a team's secret, by its name."""
    return f"team secret:{team_id}:{name}"


def slack_purpose(team_id: int) -> str:
    """Of the URLs of a team's Slack destinations."""
    return f"slack destination:{team_id}"


def user_slack_purpose(user_id: int) -> str:
    """Of the URL by which Slack tells a user."""
    return f"slack of user:{user_id}"


def apprise_purpose(team_id: int) -> str:
    """Of the URLs that a team reaches by Apprise."""
    return f"apprise destination:{team_id}"
