"""What users are notified about runs: their own choices, those of teams, and links that mute.

Each resource is a module with a `router`, listed in `routers`.
"""
