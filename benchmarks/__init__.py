"""Measurements of what runvitals costs, side by side with its peers. Run by `scripts/bench`."""
