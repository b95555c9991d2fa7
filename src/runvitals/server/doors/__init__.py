"""Answers clients of other systems, each in a package of its own. For shared servers only."""
