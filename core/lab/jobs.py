"""One worker for long work: a queue that many people share, with progress, stop and a cache of results.

What it is: a runner that executes one job at a time in this process, first come, first served. The same settings are one
job, however many people ask for it, and its result is kept for those who come later.
What it is not: a scheduler for many processes. It knows no method and no page; a page asks a ticket for its state and
draws it.

Function first: ``ticket = RUNNER.submit(key, work)``, then ``ticket.state()``, ``ticket.result()`` and ``ticket.leave()``.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

Status = Literal["waiting", "running", "done", "failed", "stopped"]
OnStep = Callable[..., None]
Work = Callable[[OnStep], Any]

_NO_FACTS: Mapping[str, Any] = MappingProxyType({})


class Stopped(Exception):
    """The job was ended because nobody waits for it any more, or this ticket has left it."""


@dataclass(frozen=True)
class JobState:
    """What a page can say about a job at one moment.

    Attributes:
        status: "waiting", "running", "done", "failed" or "stopped".
        place: Place in the queue, 1 for the next to run; 0 once it runs or has ended.
        done: Steps finished, 0 or more.
        total: Steps in all; 0 while unknown.
        facts: What the work last said about itself (for instance the loss), read-only.
        seconds_left: Estimate of the remaining run time in seconds, or None while there is nothing to go by.
    """

    status: Status
    place: int = 0
    done: int = 0
    total: int = 0
    facts: Mapping[str, Any] = field(default_factory=lambda: _NO_FACTS)
    seconds_left: float | None = None


@dataclass(eq=False)
class _Job:
    """One piece of work and everybody who waits for it. Only touched while the runner's lock is held."""

    key: Hashable
    work: Work | None
    status: Status = "waiting"
    subscribers: set[int] = field(default_factory=set)
    dropped: deque[int] = field(
        default_factory=deque
    )  # tickets that were garbage-collected; append needs no lock
    started: float = 0.0
    marks: list[tuple[float, int]] = field(
        default_factory=list
    )  # (time, done) of the first and the last report
    total: int = 0
    facts: Mapping[str, Any] = field(default_factory=lambda: _NO_FACTS)
    value: Any = None
    error: BaseException | None = None
    trace: Any = None

    def wanted(self) -> bool:
        while self.dropped:
            self.subscribers.discard(self.dropped.popleft())
        return bool(self.subscribers)


class Ticket:
    """One person's claim on a job. Made by `Runner.submit`; keep it, since a ticket thrown away counts as left."""

    def __init__(self, runner: Runner, job: _Job, number: int) -> None:
        self._runner, self._job, self._number, self._left = runner, job, number, False
        if job.status in ("waiting", "running"):
            job.subscribers.add(number)
            weakref.finalize(self, job.dropped.append, number).atexit = False

    @property
    def key(self) -> Hashable:
        """The key that the job was submitted under."""
        return self._job.key

    def state(self) -> JobState:
        """Say how the job stands now; "stopped" once this ticket has left. Never waits for the work."""
        return JobState("stopped") if self._left else self._runner._state(self._job)

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the job and return what the work returned.

        Args:
            timeout: Longest wait in seconds; None waits for as long as it takes.

        Raises:
            Stopped: This ticket has left, or the job was ended.
            TimeoutError: The job has not ended within `timeout`.
            RuntimeError: Called from inside the running work, which could never end.
            BaseException: Whatever the work itself raised; every waiter gets the same exception.
        """
        if self._left:
            raise Stopped("You have left this job; submit it again to wait for it.")
        return self._runner._wait(self, timeout)

    def leave(self) -> None:
        """Stop waiting. The job itself ends only when its last ticket has left. Leaving twice does no harm."""
        self._runner._leave(self)


class Runner:
    """Runs one job at a time on one thread and shares jobs and results by key.

    Args:
        keep: How many results stay in the cache, at least 0; the one unused for longest goes first.
        clock: A function that returns seconds and never runs backwards.

    Raises:
        ValueError: If `keep` is negative.
    """

    def __init__(self, keep: int = 32, clock: Callable[[], float] = time.monotonic) -> None:
        if keep < 0:
            raise ValueError(f"keep is {keep}; it must be 0 or more.")
        self._keep, self._clock = keep, clock
        self._changed = threading.Condition()
        self._queue: deque[_Job] = deque()
        self._active: dict[Hashable, _Job] = {}  # waiting or running
        self._cache: OrderedDict[Hashable, _Job] = OrderedDict()  # done
        self._next_ticket = 0
        self._thread: threading.Thread | None = None

    def submit(self, key: Hashable, work: Work) -> Ticket:
        """Ask for a piece of work, or join those who already wait for it.

        Args:
            key: What makes two pieces of work the same; see `core.lab.keys.settings_key`.
            work: Called as ``work(on_step)`` on the runner's thread, at most once for all who share the key. It should
                call ``on_step(done, total, facts)`` often, with `facts` a mapping or left out. `on_step` raises `Stopped` when
                nobody waits any more; the work should let that pass.

        Returns:
            A ticket of its own for every call. Its state is "done" at once if the result is in the cache.
        """
        with self._changed:
            if key in self._cache:
                self._cache.move_to_end(key)
                return self._ticket(self._cache[key])
            job = self._active.get(key)
            if job is None:
                job = self._active[key] = _Job(key, work)
                self._queue.append(job)
            ticket = self._ticket(job)  # before the worker can look for subscribers
            self._start()
            self._changed.notify_all()
            return ticket

    def peek(self, key: Hashable) -> Ticket | None:
        """A ticket for a result that is already in the cache, or None. Starts nothing and joins nothing."""
        with self._changed:
            return self._ticket(self._cache[key]) if key in self._cache else None

    def _ticket(self, job: _Job) -> Ticket:
        self._next_ticket += 1
        return Ticket(self, job, self._next_ticket)

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="plumbline-jobs", daemon=True)
            self._thread.start()

    def _serve(self) -> None:
        while True:
            with self._changed:
                while (job := self._next()) is None:
                    self._changed.wait()
                job.status, job.started = "running", self._clock()
                work, job.work = job.work, None  # the closure may hold images: let it go with the run
                self._changed.notify_all()
            assert work is not None
            self._run(job, work)
            del job, work

    def _next(self) -> _Job | None:
        self._sweep()
        return self._queue.popleft() if self._queue else None

    def _sweep(self) -> None:
        """Take jobs that nobody waits for any more out of the queue."""
        for job in [job for job in self._queue if not job.wanted()]:
            self._queue.remove(job)
            self._end(job, "stopped")

    def _run(self, job: _Job, work: Work) -> None:
        try:
            value = work(lambda done, total=0, facts=None: self._step(job, done, total, facts))
        except Stopped:
            with self._changed:
                self._end(job, "stopped")
        except BaseException as error:  # delivered to every waiter, and the worker lives on
            with self._changed:
                if job.status != "stopped":
                    job.error, job.trace = error, error.__traceback__
                    self._end(job, "failed")
        else:
            with self._changed:
                if job.status != "stopped":
                    job.value = value
                    self._end(job, "done")
                    self._cache[job.key] = job
                    while len(self._cache) > self._keep:
                        self._cache.popitem(last=False)

    def _end(self, job: _Job, status: Status) -> None:
        job.status = status
        job.work = None
        if self._active.get(job.key) is job:  # a successor under the same key stays
            del self._active[job.key]
        self._changed.notify_all()

    def _step(self, job: _Job, done: int, total: int, facts: Mapping[str, Any] | None) -> None:
        with self._changed:
            if not job.wanted():
                self._end(job, "stopped")  # from here on a new submit is a new job
            if job.status == "stopped":
                raise Stopped("Nobody waits for this job any more.")
            job.marks[1:] = [(self._clock(), int(done))]
            job.total = int(total)
            if facts is not None:
                job.facts = MappingProxyType(dict(facts))

    def _state(self, job: _Job) -> JobState:
        with self._changed:
            self._sweep()
            place = self._queue.index(job) + 1 if job in self._queue else 0
            done = job.marks[-1][1] if job.marks else 0
            left = self._seconds_left(job) if job.status == "running" else None
            return JobState(job.status, place, done, job.total, job.facts, left)

    def _seconds_left(self, job: _Job) -> float | None:
        """Remaining time at the pace since the first report: the start of a job (loading, warming up) is not typical."""
        if not job.marks or job.total <= 0:
            return None
        (first, first_done), (last, done) = job.marks[0], job.marks[-1]
        if done <= first_done:
            first, first_done = job.started, 0
        if done <= first_done:
            return None
        pace = (last - first) / (done - first_done)
        return max(0.0, pace * (job.total - done) - (self._clock() - last))

    def _wait(self, ticket: Ticket, timeout: float | None) -> Any:
        if threading.current_thread() is self._thread:
            raise RuntimeError(
                "A job cannot wait for another job: they run one at a time. Submit it from the page."
            )
        job = ticket._job
        with self._changed:
            ended = self._changed.wait_for(
                lambda: ticket._left or job.status in ("done", "failed", "stopped"), timeout
            )
            if ticket._left or job.status == "stopped":
                raise Stopped("This job was stopped before it ended.")
            if not ended:
                raise TimeoutError("The job has not ended yet.")
            if job.error is not None:
                raise job.error.with_traceback(job.trace)
            return job.value

    def _leave(self, ticket: Ticket) -> None:
        with self._changed:
            ticket._left = True
            ticket._job.subscribers.discard(ticket._number)
            self._sweep()
            self._changed.notify_all()


RUNNER = Runner()
"""The one runner of this process. Its thread starts with the first job."""
