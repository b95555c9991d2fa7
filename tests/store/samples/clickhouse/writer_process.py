"""Appends batches to the store in ClickHouse until it is killed, and prints each that is acknowledged:
PORT FOLDER."""

from __future__ import annotations

import itertools
import sys

import numpy as np

from runvitals.store.samples.clickhouse import ClickHouseAddress, ClickHouseSettings, ClickHouseStore
from runvitals.store.samples.interface import SampleBatch

T0 = 1_790_812_800_000

address = ClickHouseAddress("127.0.0.1", int(sys.argv[1]))
with ClickHouseStore(address, sys.argv[2], ClickHouseSettings(gather_s=0.0)) as store:
    for seq in itertools.count():
        store.append([SampleBatch(1, 1, seq, (1,), np.array([T0 + seq]), np.ones((1, 1)))])
        print(seq, flush=True)
