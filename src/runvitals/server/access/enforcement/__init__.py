"""What follows from a decision: hidden resources, refusals, redirects, records of changes, limits."""
