"""Findings: what is wrong with a run, why, what it costs, and what to do.

Pure: it takes columns and gives findings, and knows neither HTTP, SQL nor files. `judge` applies the rules
of `runvitals.findings.rules` to an `ObservedRun`.
"""
