"""Doing in one go what several requests ask for at the same time.

A commit waits for the disk whether it holds one request's records or a hundred's. So whatever comes while one
commit is written waits for the next, and goes into it together.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

from runvitals.store.supervised_thread import SupervisedThread

T = TypeVar("T")
R = TypeVar("R")
_MOST = 500
_LONGEST_PAUSE_S = 5.0


class Together(Generic[T, R]):
    """A thread that does the same work for many.

    Args:
        work: the answers for some questions, in their order; all or nothing.
        own: errors that are one question's fault. They are raised to who asked it: the others are done again
            without it. Any other error is raised to all.
    """

    def __init__(
        self, name: str, work: Callable[[Sequence[T]], Sequence[R]], own: tuple[type[Exception], ...]
    ) -> None:
        self._work = work
        self._own = own
        self._something = threading.Condition()
        self._waiting: list[tuple[T, Future[R]]] = []
        self.thread = SupervisedThread(name, self._turn, self._wake, longest_pause_s=_LONGEST_PAUSE_S)
        self.thread.start()

    async def ask(self, question: T) -> R:
        """The answer to a question, once the work is done."""
        future: Future[R] = Future()
        with self._something:
            if self.thread.closing.is_set():
                raise RuntimeError("the server is ending")
            self._waiting.append((question, future))
            self._something.notify()
        return await asyncio.wrap_future(future)

    @property
    def waiting(self) -> int:
        """Questions that nobody works on yet."""
        return len(self._waiting)

    def close(self) -> None:
        """Do what waits, and end."""
        with self._something:  # so that nobody asks what would not be answered
            self.thread.closing.set()
        self.thread.close()

    def _wake(self) -> None:
        with self._something:
            self._something.notify()

    def _turn(self) -> bool:
        with self._something:
            while not (self._waiting or self.thread.closing.is_set()):
                self._something.wait()
            if not self._waiting:
                return False
            group, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
        # Who has left meanwhile wants no answer; and from here on nobody can leave.
        self._answer([one for one in group if one[1].set_running_or_notify_cancel()])
        return True

    def _answer(self, group: list[tuple[T, Future[R]]]) -> None:
        if not group:
            return
        try:
            answers = self._work([question for question, _ in group])
            if len(answers) != len(group):
                raise RuntimeError(f"{len(answers)} answers to {len(group)} questions")
        except self._own as error:
            if len(group) == 1:
                group[0][1].set_exception(error)
            else:
                for one in group:
                    self._answer([one])
        except Exception as error:  # noqa: BLE001 - theirs to handle who asked, whatever it is
            for _, future in group:
                future.set_exception(error)
        else:
            for (_, future), answer in zip(group, answers, strict=True):
                future.set_result(answer)
