"""Waits of tasks of 50 ms for executors of one slot, with real processes: Tidegate and the loop of the design document."""

import contextlib
import statistics
import time
from dataclasses import dataclass

from harness import BenchError, MachineTimes
from seed_loop import SeedLoop
from task_arrivals import at_once, poisson, submit_at
from task_nodes import fleet, started_workers
from task_relay import Relays

TASK_MS = 50
# Parts of a saturated run in which the queue fills and empties.
EDGE_S = 1


@dataclass
class Waits:
    """Waits of a run. `late_ms` is the 99th percentile of the submission delay."""

    tasks: int
    mean_ms: float
    p99_ms: float
    wasted: float
    late_ms: float
    machine_busy_percent: float


@dataclass
class Saturation:
    """Shares of the total slot time: occupied, and working, which is 50 ms per task."""

    held: float
    worked: float


@dataclass
class Messages:
    a_task: float
    requests: dict


def percentile(values, share):
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


def tasks_per_s(executors, load):
    return load * executors / (TASK_MS / 1e3)


def overshoot_ms(times=40):
    """Returns how much longer than requested a sleep takes on this machine: median and maximum."""
    over = []
    for _ in range(times):
        start = time.monotonic()
        time.sleep(TASK_MS / 1e3)
        over.append((time.monotonic() - start) * 1e3 - TASK_MS)
    return statistics.median(over), max(over)


def waits(directory, binary, executors, load, seconds, seed):
    """Runs a steady load with Poisson arrivals."""
    due = poisson(tasks_per_s(executors, load), seconds, seed)
    with fleet(directory, binary, executors, TASK_MS) as (manager, _):
        machine = MachineTimes.now()
        late_ms = submit_at(manager.client_port, due, "steady")
        machine = MachineTimes.now().since(machine)
        ended(manager, len(due))
        series, waited = manager.series(), waits_ms(manager)
    refused = series["tidegate_manager_refused_total"]
    busy = 100 * machine.busy / max(machine.total, 1)
    return Waits(len(due), statistics.mean(waited), percentile(waited, 0.99), refused / len(due), late_ms, busy)


def ended(manager, count, timeout_s=120):
    counts = manager.wait_for_end(timeout_s)
    if counts["succeeded"] != count:
        raise BenchError(f"{count} tasks were submitted, and this came of them: {counts}")


def waits_ms(manager):
    """Returns the waits from submission to acceptance by the manager's clock, in whole milliseconds."""
    return [task["started_ms"] - task["submitted_ms"] for task in manager.tasks()]


def burst(directory, binary, executors):
    """Submits one second's work at once. Returns the time until its last task has a slot, as a multiple of the theoretical time,
    in which all but the last task of each executor have ended."""
    count = round(tasks_per_s(executors, 1.0))
    with fleet(directory, binary, executors, TASK_MS) as (manager, _):
        submit_at(manager.client_port, at_once(count), "burst")
        ended(manager, count)
        tasks = list(manager.tasks())
    took_ms = max(task["started_ms"] for task in tasks) - min(task["submitted_ms"] for task in tasks)
    return took_ms / (TASK_MS * (count / executors - 1))


def saturated(directory, binary, executors, seconds):
    """Keeps the queue full, and returns the shares of slot time that were occupied and working."""
    count = round(tasks_per_s(executors, 1.0) * (seconds + 3 * EDGE_S))
    with fleet(directory, binary, executors, TASK_MS) as (manager, workers):
        submit_at(manager.client_port, at_once(count), "saturated")
        time.sleep(EDGE_S)
        start, before = time.monotonic(), totals(workers)
        time.sleep(seconds)
        after, spent = totals(workers), time.monotonic() - start
        if not manager.counts()["queued"]:
            raise BenchError("the line was empty before the saturated run was over")
    held_s, done = (after[n] - before[n] for n in range(2))
    return Saturation(held_s / spent / executors, done * TASK_MS / 1e3 / spent / executors)


def totals(workers):
    """Returns slot seconds and number of ended executions."""
    series = [worker.series() for worker in workers]
    names = ("tidegate_worker_busy_seconds_total", "tidegate_worker_executions_total")
    return [sum(each[name] for each in series) for name in names]


def messages(directory, binary, executors, load, seconds, seed):
    """Returns messages per task between the manager and its executors, including capacity probes; and requests by path."""
    due = poisson(tasks_per_s(executors, load), seconds, seed)
    with contextlib.ExitStack() as stack:
        relays = Relays()

        def relayed(workers):
            stack.enter_context(relays)
            return [f"http://127.0.0.1:{relays.before(worker.port)}" for worker in workers]

        manager, _ = stack.enter_context(fleet(directory, binary, executors, TASK_MS, relayed))
        before, asked_before = relays.messages(), dict(relays.requests)
        submit_at(manager.client_port, due, "messages")
        ended(manager, len(due))
        asked = {path: (count - asked_before.get(path, 0)) / len(due) for path, count in relays.requests.items()}
        return Messages((relays.messages() - before) / len(due), asked)


def seed_loop(directory, binary, executors, load, seconds, seed):
    """Runs the same arrivals on the same executors, with as many dispatchers as executors."""
    due = poisson(tasks_per_s(executors, load), seconds, seed)
    with started_workers(directory, binary, executors, TASK_MS) as workers:
        return SeedLoop([worker.port for worker in workers], executors, seed).run_arrivals(due)
