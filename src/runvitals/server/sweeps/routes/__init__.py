"""The routes of sweeps."""
