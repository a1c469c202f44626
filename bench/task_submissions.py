"""Durable submissions per second, and tasks per second through the whole path."""

import time
from dataclasses import dataclass

from harness import BenchError, MachineTimes, run_wrk
from task_nodes import Manager, Worker

CLIENTS = 64
# No process listens there, so tasks stay queued.
NOBODY = "http://127.0.0.1:9"


@dataclass
class Submitted:
    rate: float
    p50_ms: float
    p99_ms: float
    cpu_us: float
    others_percent: float


@dataclass
class Done:
    rate: float
    submitted_rate: float
    cpu_us: float


def durable(directory, binary, seconds):
    """Submits tasks that stay queued. Counts the tasks in the store, which must match the confirmed ones."""
    with Manager(directory / "submissions", binary, [NOBODY]) as manager:
        cpu, machine = manager.process.cpu_seconds(), MachineTimes.now()
        result = submit(manager, seconds, "durable")
        cpu, machine = manager.process.cpu_seconds() - cpu, MachineTimes.now().since(machine)
        stored = sum(manager.counts().values())
        # When wrk stops, up to one task per client is under way, stored or not.
        if not result["requests"] <= stored <= result["requests"] + CLIENTS:
            raise BenchError(f"{result['requests']} submissions were confirmed, but the store has {stored} tasks")
        return Submitted(
            rate=stored / (result["duration_us"] / 1e6),
            p50_ms=result["p50_us"] / 1e3,
            p99_ms=result["p99_us"] / 1e3,
            cpu_us=cpu / stored * 1e6,
            others_percent=machine.others_percent(cpu),
        )


def submit(manager, seconds, name):
    result = run_wrk(manager.client_port, "tasks.lua", seconds, CLIENTS, core=None, path="/v1/tasks", args=[name])
    if result["socket_errors"] or result["status_errors"]:
        raise BenchError(f"submissions failed: {result}")
    return result


def in_process(directory, binary, seconds, slots):
    """Measures submit, store, place, no-op, store the end, with the executor in the manager's process."""
    with Manager(directory / "in-process", binary, slots=slots) as manager:
        return through(manager, [manager], seconds)


def by_http(directory, binary, seconds, slots):
    """Measures the same with a worker in its own process."""
    worker = Worker(directory / "worker", binary, 0, slots)
    with worker, Manager(directory / "by-http", binary, [worker.url]) as manager:
        return through(manager, [manager, worker], seconds)


def through(manager, servers, seconds):
    """Measures from the first submission until the last end is stored."""
    cpu, start = sum(each.process.cpu_seconds() for each in servers), time.monotonic()
    result = submit(manager, seconds, "noop")
    counts = manager.wait_for_end(timeout_s=60 + 20 * seconds)
    spent = time.monotonic() - start
    cpu = sum(each.process.cpu_seconds() for each in servers) - cpu
    ended = counts["succeeded"]
    if ended != sum(counts.values()) or ended < result["requests"]:
        raise BenchError(f"{result['requests']} submissions were confirmed, and this came of them: {counts}")
    return Done(ended / spent, result["requests"] / (result["duration_us"] / 1e6), cpu / ended * 1e6)
