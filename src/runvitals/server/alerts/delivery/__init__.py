"""Delivers the notifications of the outbox: by mail, Slack, webhooks and Apprise, and by changing runs."""
