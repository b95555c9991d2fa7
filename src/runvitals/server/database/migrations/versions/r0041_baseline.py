"""The oldest revision that can be upgraded.

It makes no tables: a new database gets the newest ones at once (see `newest_schema`), and an older one is of
this revision or of one that follows it.
"""

revision = "0041"
down_revision = None
