"""Small modules that know nothing of runs: delays, deadlines, wire formats, safe text for terminals."""
