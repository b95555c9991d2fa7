"""Reports on a server: text and live panels, written by programs."""
