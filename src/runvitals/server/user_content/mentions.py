"""`@name` in texts of users."""

from __future__ import annotations

import re
from typing import Final

MENTION: Final = re.compile(r"(?<![\w@/.+-])@([a-z0-9](?:[a-z0-9]|[-_](?=[a-z0-9])){0,63})(?![\w@])")
