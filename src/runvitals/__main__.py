"""`python -m runvitals` is `runvitals`."""

import sys

from runvitals.cli import main

sys.exit(main())
