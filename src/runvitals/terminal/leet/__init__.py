"""`runvitals leet`: the workspace in a terminal, over the journals of this machine.

`opening` finds the run. `run_data` follows it, `charts` lists its charts, `reduction`, `axes`, `braille` and
`chart_view` draw one, and `chart_layout` arranges them; none of these knows Textual. The screens and their
widgets (`app`, `run_screen`, `chart_grid`, `text_pane`, …) do.
"""
