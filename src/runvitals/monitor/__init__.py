"""The process beside the training that samples, watches and writes."""
