"""Small modules that know nothing of runs: delays, deadlines, wire formats, compression, safe text for terminals."""
