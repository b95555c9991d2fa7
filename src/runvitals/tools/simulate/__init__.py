"""`runvitals simulate`: simulated devices, hosts and training, written through the real journal.

`profiles` defines the machines and `scenario` the course of a run. `devices` and `host` compute the resulting
readings, `training` the logged rows and the output. `node` writes the journals of one host, and `simulation`
drives them all.
"""

from runvitals.tools.simulate.profiles import KINDS, Profile
from runvitals.tools.simulate.simulation import Simulation, SimulationTotals
from runvitals.tools.simulate.start import at_once, begin, pacer

__all__ = ["KINDS", "Profile", "Simulation", "SimulationTotals", "at_once", "begin", "pacer"]
