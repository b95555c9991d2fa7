"""`runvitals top`: this machine's readings, without a run, for the terminal.

`machine_sampler` takes samples, `vitals` derives what to show from them, `view` lays it out in lines, and
`plain_text` prints these. The interactive view is `leet/machine`.
"""
