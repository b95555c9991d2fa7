"""What the SDK says to the person in front of the terminal."""

from __future__ import annotations

import sys


def tell(text: str) -> None:
    """One line for the person, on stderr; a stderr that is closed is no reason to end a training."""
    try:
        # In one piece, or what the command prints at the same moment comes between the text and its newline.
        sys.stderr.write(f"runvitals: {text}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        return
