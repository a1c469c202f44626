"""Measurements of a receiver: throughput, records lost by a kill, latency until stored, and memory."""

import contextlib
import resource
import statistics
import time
from dataclasses import dataclass

from harness import BenchError, MachineTimes
from usage_senders import PacedPusher, Pusher, Sender

OURS = ["tidegate-frames", "tidegate-lines"]
# Each sender alone saturates the node: ten of them offer 10× capacity.
OVERLOAD_SENDERS, OVERLOAD_PUSHERS = 8, 2
# The receiver is killed when this share of the stream is written, or when it accepts nothing for this time.
KILL_SHARE = 1 / 2
STUCK_S = 2
POLL_S = 0.01
# A count that has not changed for this time is final.
STALL_S = 30
SEND_TIMEOUT_S = 300
MEMORY_SAMPLE_S = 0.2


@dataclass
class Sample:
    """Figures of one receiver in one round at maximum rate."""

    rate: float
    cpu_us: float
    sender_cpu_us: float
    dropped: int
    others_percent: float


@dataclass
class Killed:
    """Records after a kill and a restart of the receiver."""

    # Records that the sender considers safe: acked, or written where there are no acks.
    counted_on: int
    lost: int
    twice: int


@dataclass
class Latency:
    rate: float
    p50_ms: float
    p99_ms: float


@dataclass
class Overload:
    """Memory under 10× overload."""

    budget_bytes: int
    memory_bytes_max: int
    rss_idle_kib: int
    rss_peak_kib: int
    rate: float

    @property
    def rss_above_idle_mib(self):
        return (self.rss_peak_kib - self.rss_idle_kib) / 1024


# === measuring ===


class Meter:
    """Meters the CPU of the machine, of a process, and of this run with its children from now on."""

    def __init__(self, process):
        self.process = process
        self.machine = MachineTimes.now()
        self.cpu, self.own = process.cpu_seconds(), own_cpu_seconds()
        self.start = time.monotonic()

    def sample(self, end, stored, sender_cpu_seconds, dropped=0):
        if stored == 0:
            raise BenchError(f"{self.process.name} stored nothing within {STALL_S} s")
        cpu, own = self.process.cpu_seconds() - self.cpu, own_cpu_seconds() - self.own
        return Sample(
            rate=stored / (end - self.start),
            cpu_us=cpu * 1e6 / stored,
            sender_cpu_us=sender_cpu_seconds * 1e6 / stored,
            dropped=dropped,
            others_percent=MachineTimes.now().since(self.machine).others_percent(cpu + own),
        )


def own_cpu_seconds():
    """Returns the CPU time of this process and of its ended children."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def children_cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(receiver, workload):
    if receiver.name == "tidegate-frames":
        return measure_frames(receiver, workload)
    return measure_lines(receiver, workload)


def measure_frames(node, workload):
    """Measures from the start of the sender to its end, when all batches are acked."""
    meter, children = Meter(node.process), children_cpu_seconds()
    send_all(node, workload)
    sample = meter.sample(time.monotonic(), workload.lines, children_cpu_seconds() - children)
    check_count(node, workload.lines)
    return sample


def send_all(node, workload):
    with Sender(node.binary, node.frames_address, workload) as sender:
        return sender.complete_summary(SEND_TIMEOUT_S)


def measure_lines(receiver, workload):
    """Measures from the connection until all lines are stored. Lines that are never stored were dropped."""
    meter = Meter(receiver.process)
    pusher = Pusher(receiver.port, workload)
    share, end = wait_stored(receiver, workload)
    pusher.stop()
    stored = round(share * workload.lines)
    sample = meter.sample(end, stored, pusher.cpu_seconds, workload.lines - stored)
    if receiver.name in OURS:
        check_count(receiver, workload.lines)
    return sample


def check_count(node, expected):
    """Checks the number of records in the store itself, not of acks or counters."""
    found, _ = node.count()
    if found != expected:
        raise BenchError(f"{node.name}: {expected} records should be stored, and {found} are")


def wait_stored(receiver, workload, share_wanted=1.0):
    """Waits for the requested share to be stored; returns the share and its time."""
    share, at = 0.0, time.monotonic()
    while share < share_wanted and time.monotonic() - at < STALL_S:
        receiver.process.check_alive()
        if (now := receiver.share(workload)) > share:
            share, at = now, time.monotonic()
        time.sleep(POLL_S)
    return share, at


# === what a kill loses ===


def kill(receiver, workload):
    if receiver.name == "tidegate-frames":
        return kill_frames(receiver, workload)
    return kill_lines(receiver, workload)


def kill_frames(node, workload):
    """Kills the receiver and stops the sender. After a second send, every record must be stored exactly once."""
    with Sender(node.binary, node.frames_address, workload) as sender:
        wait_stored(node, workload, KILL_SHARE)
        node.kill()
        sender.interrupt()
        acked = sender.summary(timeout_s=30)["acked"]
    node.restart()
    stored, _ = node.count()
    again = send_all(node, workload)
    total, _ = node.count()
    if again["acked"] + again["repeated"] != workload.lines:
        raise BenchError(f"sent again, all of {workload.lines} records should be settled: {again}")
    missing_at_last = max(workload.lines - total, 0)
    return Killed(acked, max(acked - stored, 0) + missing_at_last, max(total - workload.lines, 0))


def kill_lines(receiver, workload):
    """Measures lines that the kernel accepted from the sender and that were never stored."""
    pusher = Pusher(receiver.port, workload)
    wait_written(pusher, receiver)
    receiver.kill()
    pusher.stop()
    written = workload.lines_in(pusher.sent)
    receiver.restart()
    receiver.settle(workload)
    found, twice = receiver.count(workload)
    return Killed(written, max(written - found, 0), twice)


def wait_written(pusher, receiver):
    """Waits for the time to kill. A receiver that accepts nothing more gets time to store something first."""
    sent, at = 0, time.monotonic()
    while pusher.sent < KILL_SHARE * pusher.workload.bytes and time.monotonic() - at < STALL_S:
        if pusher.sent > sent:
            sent, at = pusher.sent, time.monotonic()
        elif time.monotonic() - at > STUCK_S and receiver.share(pusher.workload) > 0:
            return
        time.sleep(POLL_S)


# === how long it takes ===


def latency(node, workload, rate):
    """Measures latency at a fixed rate."""
    if node.name == "tidegate-frames":
        return frames_latency(node, workload, rate)
    return lines_latency(node, workload, rate)


def frames_latency(node, workload, rate):
    """Measures from when the sender accepts the oldest record of a batch until the ack of the batch."""
    with Sender(node.binary, node.frames_address, workload, "--rate", rate) as sender:
        told = sender.complete_summary(SEND_TIMEOUT_S)
    return Latency(told["records_per_s"], told["p50_ms"], told["p99_ms"])


def lines_latency(node, workload, rate):
    """Measures from when lines were due until the node reports them as stored, because lines have no acks."""
    pusher, polls = PacedPusher(node.port, workload, rate), []
    progress_at = time.monotonic()
    while not polls or polls[-1][1] < workload.lines:
        stored, now = node.stats()["records_stored"], time.monotonic()
        if not polls or stored > polls[-1][1]:
            progress_at = now
        elif now - progress_at > STALL_S:
            raise BenchError(f"{node.name}: {stored} of {workload.lines} lines are stored, and no more come")
        polls.append((now, stored))
        time.sleep(POLL_S)
    pusher.wait()
    delays_ms, poll = [], 0
    for due, lines in pusher.due:
        while polls[poll][1] < lines:
            poll += 1
        delays_ms.append((polls[poll][0] - due) * 1e3)
    quantiles = statistics.quantiles(delays_ms, n=100, method="inclusive")
    elapsed = polls[-1][0] - pusher.due[0][0]
    return Latency(workload.lines / elapsed, quantiles[49], quantiles[98])


# === memory ===


def overload(node, workload, seconds):
    idle_kib = node.process.rss_kib()
    with contextlib.ExitStack() as stack:
        senders = []
        for number in range(OVERLOAD_SENDERS):
            sender = Sender(node.binary, node.frames_address, workload, "--sender", f"overload-{number}")
            senders.append(stack.enter_context(sender))
        for _ in range(OVERLOAD_PUSHERS):
            stack.callback(Pusher(node.port, workload, endless=True).stop)
        stats = sample_stats(node, seconds)
        peak_kib = node.process.rss_peak_kib()
        if not all(sender.is_running() for sender in senders):
            raise BenchError("this was no overload: a sender had nothing left to send. Give more --lines")
    return Overload(
        budget_bytes=stats[-1]["budget_bytes"],
        memory_bytes_max=max(each["memory_bytes"] for each in stats),
        rss_idle_kib=idle_kib,
        rss_peak_kib=peak_kib,
        rate=stats[-1]["records_stored"] / seconds,
    )


def sample_stats(node, seconds):
    start, stats = time.monotonic(), []
    for number in range(1, round(seconds / MEMORY_SAMPLE_S) + 1):
        time.sleep(max(0, start + number * MEMORY_SAMPLE_S - time.monotonic()))
        stats.append(node.stats())
    return stats
