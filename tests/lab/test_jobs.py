"""The job runner, driven step by step: every wait is for an event, no test depends on how fast the machine is."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.lab.jobs import Runner, Stopped

PATIENCE = 30.0  # seconds after which a wait counts as a hang; never reached when the code is right


class Work:
    """A piece of work that the test moves: it starts, then takes one step for each `go`, then returns or raises."""

    def __init__(self, value=None, steps=0, error=None):
        self.value, self.steps, self.error = value, steps, error
        self.runs = 0
        self.started, self.reported, self.ended = threading.Event(), threading.Semaphore(0), threading.Event()
        self.go = threading.Semaphore(0)

    def __call__(self, on_step):
        self.runs += 1
        self.started.set()
        try:
            for step in range(1, self.steps + 1):
                assert self.go.acquire(timeout=PATIENCE)
                on_step(step, self.steps, {"loss": 1 / step})
                self.reported.release()
            assert self.go.acquire(timeout=PATIENCE)
            if self.error:
                raise self.error
            return self.value
        finally:
            self.ended.set()

    def step(self):
        self.go.release()
        assert self.reported.acquire(timeout=PATIENCE)

    def wait_started(self):
        assert self.started.wait(PATIENCE)

    def wait_ended(self):
        assert self.ended.wait(PATIENCE)


class Clock:
    """A clock that only the test moves."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def quick(value):
    return lambda on_step: value


def test_thirty_people_press_the_button_at_once_and_the_work_runs_once():
    runner, work = Runner(), Work(value=object())
    ready = threading.Barrier(30)

    def press(_):
        ready.wait(PATIENCE)
        return runner.submit("same settings", work).result(PATIENCE)

    with ThreadPoolExecutor(30) as people:
        answers = people.map(press, range(30))
        work.wait_started()
        work.go.release()
        answers = list(answers)
    assert work.runs == 1
    assert all(answer is work.value for answer in answers)


def test_a_late_visitor_gets_the_result_from_the_cache_without_a_run():
    runner = Runner()
    first = runner.submit("a", quick(7))
    assert first.result(PATIENCE) == 7
    late = runner.submit("a", Work())
    assert late.state().status == "done"
    assert late.result(0) == 7


def test_a_result_of_none_is_a_result_too():
    runner = Runner()
    assert runner.submit("a", quick(None)).result(PATIENCE) is None
    assert runner.submit("a", quick("run again")).result(PATIENCE) is None


def test_jobs_run_one_at_a_time_in_the_order_of_asking_and_the_place_is_told():
    runner = Runner()
    works = [Work(value=i) for i in range(4)]
    tickets = [runner.submit(i, work) for i, work in enumerate(works)]
    works[0].wait_started()
    assert [t.state().status for t in tickets] == ["running", "waiting", "waiting", "waiting"]
    assert [t.state().place for t in tickets] == [0, 1, 2, 3]
    works[0].go.release()
    works[1].wait_started()
    assert works[0].ended.is_set() and not works[2].started.is_set()
    assert [t.state().place for t in tickets] == [0, 0, 1, 2]
    for work in works[1:]:
        work.go.release()
    assert [t.result(PATIENCE) for t in tickets] == [0, 1, 2, 3]


def test_somebody_who_joins_a_waiting_job_shares_its_place():
    runner, busy = Runner(), Work()
    holder = runner.submit("busy", busy)
    busy.wait_started()
    a, b = runner.submit("a", quick(1)), runner.submit("b", quick(2))
    also_a = runner.submit("a", quick(1))
    assert (a.state().place, also_a.state().place, b.state().place) == (1, 1, 2)
    busy.go.release()
    assert holder.result(PATIENCE) is None
    assert also_a.result(PATIENCE) == 1 and b.result(PATIENCE) == 2


def test_progress_facts_and_time_left_are_told():
    clock = Clock()
    runner, work = Runner(clock=clock), Work(steps=5)
    ticket = runner.submit("a", work)
    work.wait_started()
    assert ticket.state().seconds_left is None and ticket.state().total == 0
    clock.now = 20.0  # loading took 20 s before the first step
    work.step()
    state = ticket.state()
    assert (state.done, state.total, state.facts["loss"]) == (1, 5, 1.0)
    assert state.seconds_left == pytest.approx(80.0)  # nothing better to go by than the start
    clock.now = 22.0
    work.step()
    assert ticket.state().seconds_left == pytest.approx(
        6.0
    )  # 2 s a step, three to go; the loading no longer counts
    clock.now = 23.0
    assert ticket.state().seconds_left == pytest.approx(5.0)  # counts down between reports
    clock.now = 100.0
    assert ticket.state().seconds_left == 0.0  # late, but never negative
    for _ in range(3):
        work.step()
    work.go.release()
    ticket.result(PATIENCE)
    assert ticket.state().status == "done" and ticket.state().seconds_left is None


def test_the_facts_of_a_state_cannot_be_changed_by_anybody():
    runner, work = Runner(), Work(steps=1)
    ticket = runner.submit("a", work)
    work.step()
    with pytest.raises(TypeError):
        ticket.state().facts["loss"] = 0
    work.go.release()
    ticket.result(PATIENCE)


def test_a_job_goes_on_while_one_of_its_people_still_waits():
    runner, work = Runner(), Work(value=3, steps=2)
    mine, yours = runner.submit("a", work), runner.submit("a", work)
    work.step()
    mine.leave()
    mine.leave()  # twice does no harm, and does not count for somebody else
    work.step()
    work.go.release()
    assert yours.result(PATIENCE) == 3
    assert mine.state().status == "stopped"
    with pytest.raises(Stopped):
        mine.result(PATIENCE)


def test_a_job_ends_at_its_next_step_when_the_last_of_its_people_has_left():
    runner, work = Runner(), Work(steps=2)
    mine, yours = runner.submit("a", work), runner.submit("a", work)
    work.step()
    mine.leave()
    yours.leave()
    work.go.release()
    work.wait_ended()
    assert not work.reported.acquire(blocking=False)  # on_step raised: the second step was never reported
    again = runner.submit("a", quick("a new run"))
    assert again.result(PATIENCE) == "a new run"


def test_somebody_who_comes_back_before_the_next_step_keeps_the_job_alive():
    runner, work = Runner(), Work(value=5, steps=2)
    ticket = runner.submit("a", work)
    work.step()
    ticket.leave()
    back = runner.submit("a", Work())
    work.step()
    work.go.release()
    assert back.result(PATIENCE) == 5 and work.runs == 1


def test_a_waiting_job_that_everybody_left_never_starts():
    runner, busy, never = Runner(), Work(), Work()
    holder = runner.submit("busy", busy)
    busy.wait_started()
    left, behind = runner.submit("never", never), runner.submit("behind", quick(1))
    assert behind.state().place == 2
    left.leave()
    assert behind.state().place == 1
    busy.go.release()
    assert behind.result(PATIENCE) == 1
    assert holder.result(PATIENCE) is None
    assert never.runs == 0


def test_leaving_wakes_the_one_who_waits():
    runner, work = Runner(), Work()
    ticket = runner.submit("a", work)
    stay = runner.submit("a", work)
    with ThreadPoolExecutor(1) as person:
        waiting = person.submit(ticket.result, PATIENCE)
        work.wait_started()
        ticket.leave()
        with pytest.raises(Stopped):
            waiting.result(PATIENCE)
    work.go.release()
    stay.result(PATIENCE)


def test_a_ticket_that_was_thrown_away_counts_as_left():
    runner, busy, never = Runner(), Work(), Work()
    holder = runner.submit("busy", busy)
    busy.wait_started()
    forgotten = runner.submit("never", never)
    behind = runner.submit("behind", quick(1))
    del forgotten  # the person closed the tab and the session went
    gc.collect()
    busy.go.release()
    assert behind.result(PATIENCE) == 1 and holder.result(PATIENCE) is None
    assert never.runs == 0


def test_work_that_swallows_the_stop_leaves_no_result_behind():
    runner = Runner()
    at_work, may_step, stopped = threading.Event(), threading.Event(), threading.Event()

    def stubborn(on_step):
        at_work.set()
        assert may_step.wait(PATIENCE)
        try:
            on_step(1, 1)
        except Stopped:
            stopped.set()
        return "half a result"

    ticket = runner.submit("a", stubborn)
    assert at_work.wait(PATIENCE)
    ticket.leave()
    may_step.set()
    assert stopped.wait(PATIENCE)
    assert runner.submit("a", quick("a whole result")).result(PATIENCE) == "a whole result"


def test_an_error_reaches_everybody_who_waits_and_is_not_kept():
    runner = Runner()
    error = ValueError("3 images are too few; 9 are needed.")
    work = Work(error=error)
    tickets = [runner.submit("a", work) for _ in range(3)]
    with ThreadPoolExecutor(3) as people:
        waits = [people.submit(t.result, PATIENCE) for t in tickets]
        work.go.release()
        for wait in waits:
            assert wait.exception(PATIENCE) is error
    assert {t.state().status for t in tickets} == {"failed"}
    assert runner.peek("a") is None
    assert runner.submit("a", quick("works now")).result(PATIENCE) == "works now"


def test_the_worker_survives_even_an_exit():
    runner = Runner()
    work = Work(error=SystemExit(1))
    ticket = runner.submit("a", work)
    work.go.release()
    with pytest.raises(SystemExit):
        ticket.result(PATIENCE)
    assert runner.submit("b", quick(1)).result(PATIENCE) == 1


def test_a_job_that_waits_for_another_job_is_told_so_instead_of_hanging():
    runner = Runner()

    def nested(on_step):
        return runner.submit("inner", quick(1)).result()

    with pytest.raises(RuntimeError, match="one at a time"):
        runner.submit("outer", nested).result(PATIENCE)


def test_a_wait_with_a_limit_ends_and_the_job_goes_on():
    runner, work = Runner(), Work(value=1)
    ticket = runner.submit("a", work)
    with pytest.raises(TimeoutError):
        ticket.result(timeout=0)
    work.go.release()
    assert ticket.result(PATIENCE) == 1


def test_peek_finds_what_is_ready_and_starts_nothing():
    runner = Runner()
    assert runner.peek("a") is None
    runner.submit("a", quick(4)).result(PATIENCE)
    found = runner.peek("a")
    assert found is not None and found.result(0) == 4


def test_the_work_is_let_go_of_when_it_has_run():
    runner = Runner()
    ticket = runner.submit("a", quick(1))
    ticket.result(PATIENCE)
    assert (
        ticket._job.work is None
    )  # a closure over uploaded images must not live as long as the cached result


def test_a_negative_cache_is_refused():
    with pytest.raises(ValueError, match="keep"):
        Runner(keep=-1)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 4), st.lists(st.integers(0, 6), max_size=25))
def test_the_cache_behaves_like_a_plain_list_of_the_most_recently_used(keep, keys):
    runner, recent = Runner(keep=keep), []
    for key in keys:
        ran = []
        assert runner.submit(key, lambda on_step, k=key, r=ran: r.append(k) or k).result(PATIENCE) == key
        assert bool(ran) == (key not in recent)
        recent = ([key] + [k for k in recent if k != key])[:keep]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["ask", "leave"]), st.integers(0, 3)), max_size=20))
def test_only_jobs_that_somebody_still_wants_are_run(moves):
    """Behind a busy job, any mixture of asking and leaving: exactly the wanted keys run, each once, in order of asking."""
    runner, busy = Runner(), Work()
    holder = runner.submit("busy", busy)
    busy.wait_started()
    ran, held, order = [], {}, []
    for move, key in moves:
        if move == "ask":
            if not held.get(key):
                order = [k for k in order if k != key] + [key]
            held.setdefault(key, []).append(runner.submit(key, lambda on_step, k=key: ran.append(k)))
        elif held.get(key):
            held[key].pop().leave()
    wanted = [key for key in order if held.get(key)]
    for place, key in enumerate(wanted, start=1):
        assert all(ticket.state().place == place for ticket in held[key])
    busy.go.release()
    for key in wanted:
        for ticket in held[key]:
            ticket.result(PATIENCE)
    assert holder.result(PATIENCE) is None
    assert ran == wanted
