"""The cost of what clients of other systems send."""
