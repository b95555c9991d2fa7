"""`runvitals simulate`: simulated devices, hosts and training, written through the real journal.

`profiles` says which machines there are, `story` what happens when, `devices` and `host` what is then to be
read, `training` what is logged and printed; `node` writes one host's journals, `simulation` plays it all.
"""

from runvitals.simulate.profiles import KINDS, Profile
from runvitals.simulate.simulation import Simulation, Totals
from runvitals.simulate.start import begin, on_time

__all__ = ["KINDS", "Profile", "Simulation", "Totals", "begin", "on_time"]
