"""How long a test waits for something to happen before it fails.

Long enough for a machine that is busy with other work: a test that passes never waits this long.
"""

PATIENCE_S = 120.0
