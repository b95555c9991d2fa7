"""`runvitals doctor`: what works on this machine, what does not, why, and what would help.

One file a subject; `examination` asks them all, `bundle` packs the answers for somebody else to read.
"""

from runvitals.doctor.examination import Report, examine
from runvitals.doctor.finding import Finding

__all__ = ["Finding", "Report", "examine"]
