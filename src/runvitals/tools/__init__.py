"""Checks of this machine (`doctor`), and simulated ones (`simulate`)."""
