"""What is measured of a receiver: how fast it takes all, what a kill loses, how long storing takes, and memory."""

import contextlib
import resource
import statistics
import time
from dataclasses import dataclass

from harness import BenchError, MachineTimes
from usage_senders import PacedPusher, Pusher, Sender

OURS = ["tidegate-frames", "tidegate-lines"]
# Each alone is given all the capacity there is: ten of them ask for ten times as much.
OVERLOAD_SENDERS, OVERLOAD_PUSHERS = 8, 2
# When so much of the stream is written, the receiver is killed; or when no more of it is taken for so long.
KILL_SHARE = 1 / 2
STUCK_S = 2
POLL_S = 0.01
# What has not grown for so long will not.
STALL_S = 30
SEND_TIMEOUT_S = 300
MEMORY_SAMPLE_S = 0.2


@dataclass
class Sample:
    """One receiver in one round, as fast as it takes."""

    rate: float
    cpu_us: float
    sender_cpu_us: float
    dropped: int
    others_percent: float


@dataclass
class Killed:
    """What a receiver that was killed in the middle has after a restart."""

    # Records that the sender has reason to think are safe: acked; written, where there are no acks.
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
    """Memory while ten senders ask for all."""

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
    """What the machine, a process and this run with its children use from now on."""

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
    """Of this process and of its children that have ended."""
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
    """From the start of the sender to its end, which comes when all is acked."""
    meter, children = Meter(node.process), children_cpu_seconds()
    send_all(node, workload)
    sample = meter.sample(time.monotonic(), workload.lines, children_cpu_seconds() - children)
    check_count(node, workload.lines)
    return sample


def send_all(node, workload):
    with Sender(node.binary, node.frames_address, workload) as sender:
        return sender.complete_summary(SEND_TIMEOUT_S)


def measure_lines(receiver, workload):
    """From the connection until all is stored. What never is was dropped."""
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
    """By the store's own account, not by what was acked or counted."""
    found, _ = node.count()
    if found != expected:
        raise BenchError(f"{node.name}: {expected} records should be stored, and {found} are")


def wait_stored(receiver, workload, share_wanted=1.0):
    """The share that is stored, and since when: that which was asked for, or the last there was."""
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
    """The sender is ended too, and says what was acked. Sent again, the file must be there exactly once."""
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
    """What the kernel took from the sender, and never came to the store."""
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
    """Until it is time to kill. One that takes nothing more gets the time to store something before."""
    sent, at = 0, time.monotonic()
    while pusher.sent < KILL_SHARE * pusher.workload.bytes and time.monotonic() - at < STALL_S:
        if pusher.sent > sent:
            sent, at = pusher.sent, time.monotonic()
        elif time.monotonic() - at > STUCK_S and receiver.share(pusher.workload) > 0:
            return
        time.sleep(POLL_S)


# === how long it takes ===


def latency(node, workload, rate):
    """At so many records a second."""
    if node.name == "tidegate-frames":
        return frames_latency(node, workload, rate)
    return lines_latency(node, workload, rate)


def frames_latency(node, workload, rate):
    """From when the oldest record of a batch was taken by the sender until the batch is acked."""
    with Sender(node.binary, node.frames_address, workload, "--rate", rate) as sender:
        told = sender.complete_summary(SEND_TIMEOUT_S)
    return Latency(told["records_per_s"], told["p50_ms"], told["p99_ms"])


def lines_latency(node, workload, rate):
    """There are no acks: from when lines were due to be written until the node says that as many are stored."""
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
