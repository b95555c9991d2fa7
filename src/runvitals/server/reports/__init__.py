"""Reports: documents of text and live panels."""
