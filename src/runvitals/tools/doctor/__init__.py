"""`runvitals doctor`: checks what works on this machine and suggests fixes.

Each module checks one subject. `examination` runs all checks; `bundle` writes a support bundle.
"""

from runvitals.tools.doctor.examination import Examination, examine
from runvitals.tools.doctor.finding import Check

__all__ = ["Check", "Examination", "examine"]
