"""Reports: pages of text and live panels on which teams say what they found."""
