from __future__ import annotations

from runvitals.server.access.decisions.decision_cache import DecisionCache


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_a_value_is_computed_once_until_the_generation_changes() -> None:
    generation, clock, computed = [1], Clock(), []

    def compute() -> int:
        computed.append(generation[0])
        return len(computed)

    cache = DecisionCache(lambda: generation[0], clock, check_s=0.5)
    assert [cache.get("alice", compute), cache.get("alice", compute)] == [1, 1]
    generation[0] = 2
    assert cache.get("alice", compute) == 1
    clock.now_s += 0.5
    assert cache.get("alice", compute) == 2
    assert computed == [1, 2]


def test_the_own_process_forgets_at_once() -> None:
    generation = [1]
    cache = DecisionCache(lambda: generation[0], Clock())
    assert cache.get("key", lambda: "before") == "before"
    generation[0] = 2
    cache.check()
    assert cache.get("key", lambda: "after") == "after"


def test_what_was_computed_during_a_change_is_forgotten() -> None:
    generation = [1]
    cache = DecisionCache(lambda: generation[0], Clock())

    def compute() -> str:
        generation[0] = 2  # another process changes rights while this one reads them
        return "old"

    assert cache.get("key", compute) == "old"
    cache.check()
    assert cache.get("key", lambda: "new") == "new"


def test_a_cached_none_is_a_value() -> None:
    cache = DecisionCache(lambda: 1, Clock())
    assert cache.get("unknown key", lambda: None) is None
    assert cache.get("unknown key", lambda: "never") is None
