#!/usr/bin/env python3
"""Compares gateways in front of one upstream: CPU per request, requests per second, latency.

Run by `make bench`, or alone: `bench/gateway.py --rounds 12 --seconds 3`. Rounds are interleaved and shuffled,
and every ratio is taken within a round, so that a slow minute of the machine affects all candidates equally.
Exit code: 0 all targets hold, 1 a target is missed, 2 the run produced no figures.
"""

import argparse
import contextlib
import os
import random
import resource
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.dont_write_bytecode = True  # The run leaves no files behind, not even bytecode caches.

from harness import (
    LOAD_CORE,
    BenchError,
    MachineTimes,
    alone,
    exit_on_sigterm,
    machine_line,
    parse,
    require,
    run_wrk,
    split_at_markers,
    spread,
    tidegate_binary,
    write_section,
)
from peers import Candidate, Peers

CANDIDATES = ["direct", "nginx", "haproxy", "envoy", "tidegate", "tidegate-refuse"]
CONNECTIONS = 64
# A measurement during which other processes used more than this share of the machine is repeated. The rule
# depends only on the machine, never on the figure.
OTHERS_PERCENT_MAX = 5
ATTEMPTS_MAX = 3
# With fewer rounds the interquartile range is wider than the differences that the targets test.
ROUNDS_MIN = 12
MARKERS = ("<!-- gateway:begin -->", "<!-- gateway:end -->")


@dataclass
class Sample:
    """Figures of one candidate in one round."""

    requests_a_second: float
    cpu_us: float
    p50_ms: float
    p99_ms: float
    steal_percent: float
    others_percent: float
    attempts: int = 1


@dataclass
class Target:
    """Target: a ratio and its bound."""

    text: str
    candidate: str
    peers: tuple
    field: str
    bound: float
    at_most: bool

    def holds(self, ratio):
        return ratio <= self.bound if self.at_most else ratio >= self.bound


PLAIN_PROXIES = ("nginx", "haproxy")
TARGETS = [
    Target("CPU per request, tidegate / better plain proxy", "tidegate", PLAIN_PROXIES, "cpu_us", 1.15, True),
    Target("CPU per request, tidegate / Envoy", "tidegate", ("envoy",), "cpu_us", 0.4, True),
    Target("rate, tidegate / better plain proxy", "tidegate", PLAIN_PROXIES, "requests_a_second", 0.85, False),
    Target("CPU per request, refused / proxied", "tidegate-refuse", ("tidegate",), "cpu_us", 0.4, True),
]


# === measuring ===


def measure(candidate, upstream, options):
    """Measures one round of one candidate. The CPU time is the proxy's; for `direct` it is the upstream's."""
    processes = {candidate.process, upstream}
    with candidate.ready():
        machine, cpu = MachineTimes.now(), {process: process.cpu_seconds() for process in processes}
        children = children_cpu_seconds()
        result = run_wrk(candidate.port, "report.lua", options.seconds, CONNECTIONS)
        used = {process: process.cpu_seconds() - cpu[process] for process in processes}
        spent = MachineTimes.now().since(machine)
    check_answers(candidate, result, options)
    own = sum(used.values()) + children_cpu_seconds() - children
    return Sample(
        requests_a_second=result["requests"] / (result["duration_us"] / 1e6),
        cpu_us=used[candidate.process] * 1e6 / result["requests"],
        p50_ms=result["p50_us"] / 1e3,
        p99_ms=result["p99_us"] / 1e3,
        steal_percent=spent.steal_percent,
        others_percent=spent.others_percent(own),
    )


def measure_undisturbed(candidate, upstream, options):
    """Returns the first undisturbed measurement or, if there is none, the least disturbed one."""
    samples = []
    for attempt in range(1, (1 if options.smoke else ATTEMPTS_MAX) + 1):
        samples.append(measure(candidate, upstream, options))
        if samples[-1].others_percent <= OTHERS_PERCENT_MAX:
            break
    best = min(samples, key=lambda sample: sample.others_percent)
    best.attempts = attempt
    return best


def children_cpu_seconds():
    """Returns the CPU time of ended children: that of wrk, as the difference of two calls around its run."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def check_answers(candidate, result, options):
    expected_errors = 0 if candidate.status == 200 else result["requests"]
    # An unoptimised gateway on a busy machine may refuse some. The smoke form measures nothing.
    is_other = result["status_errors"] != expected_errors and not options.smoke
    if result["requests"] == 0 or result["socket_errors"] or is_other:
        raise BenchError(f"{candidate.name}: every answer should be a {candidate.status}, wrk saw {result}")


def warm_up(candidate, options):
    """Warms up, and verifies that only the expected status occurs: a measured round only counts errors."""
    with candidate.ready():
        result = run_wrk(candidate.port, "statuses.lua", options.warm_up, CONNECTIONS)
    is_other = result["statuses"] != [candidate.status] and not options.smoke
    if candidate.status not in result["statuses"] or is_other or result["socket_errors"]:
        raise BenchError(f"{candidate.name}: every answer should be a {candidate.status}, wrk saw {result}")


def run_rounds(candidates, upstream, options):
    samples = {candidate.name: [] for candidate in candidates}
    shuffle = random.Random(options.seed).shuffle
    for number in range(1, options.rounds + 1):
        shuffle(candidates)
        for candidate in candidates:
            samples[candidate.name].append(measure_undisturbed(candidate, upstream, options))
        progress = "  ".join(f"{name} {taken[-1].cpu_us:.1f}" for name, taken in samples.items())
        print(f"round {number}/{options.rounds}, CPU µs per request: {progress}", file=sys.stderr, flush=True)
    return samples


# === reporting ===


def column(samples, name, field):
    return [getattr(sample, field) for sample in samples[name]]


def paired(samples, name, peer, field):
    """Returns ratios within the same round."""
    ours, theirs = column(samples, name, field), column(samples, peer, field)
    return [a / b for a, b in zip(ours, theirs, strict=True)]


def table(samples):
    yield "| candidate | CPU µs per request | × direct | requests/s | × direct | p50 ms | p99 ms | steal % | others % |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for name in [name for name in CANDIDATES if name in samples]:
        cells = [
            name,
            spread(column(samples, name, "cpu_us"), 1),
            spread(paired(samples, name, "direct", "cpu_us"), 2),
            spread(column(samples, name, "requests_a_second"), 0),
            spread(paired(samples, name, "direct", "requests_a_second"), 2),
            spread(column(samples, name, "p50_ms"), 2),
            spread(column(samples, name, "p99_ms"), 2),
            spread(column(samples, name, "steal_percent"), 1),
            spread(column(samples, name, "others_percent"), 1),
        ]
        yield f"| {' | '.join(cells)} |"


def better_peer(samples, target):
    """Returns the peer with the better median: lower CPU, or higher rate."""
    present = [peer for peer in target.peers if peer in samples]
    if target.candidate not in samples or len(present) < len(target.peers):
        return None
    pick = min if target.at_most else max
    return pick(present, key=lambda peer: statistics.median(column(samples, peer, target.field)))


def judge(samples):
    """Returns one line per target, and the number of missed targets."""
    lines, missed = [], 0
    for target in TARGETS:
        sign = "≤" if target.at_most else "≥"
        peer = better_peer(samples, target)
        if peer is None:
            lines.append(f"- {target.text} {sign} {target.bound}: not measured in this run")
            continue
        ratios = paired(samples, target.candidate, peer, target.field)
        holds = target.holds(statistics.median(ratios))
        missed += not holds
        verdict = "holds" if holds else "MISSED"
        lines.append(f"- {target.text} {sign} {target.bound}: {spread(ratios, 2)} against {peer}: {verdict}")
    return lines, missed


def setting(peers, options, spent):
    stolen = f"{spent.steal_percent:.1f} % of the CPU time"
    yield f"Machine: {machine_line()}. Over the whole run the hypervisor stole {stolen}."
    yield ""
    yield from (f"- {name}: {version}" for name, version in peers.versions().items())
    yield ""
    yield (
        f"{options.rounds} interleaved rounds of {options.seconds} s in shuffled order (seed {options.seed}), "
        f"{CONNECTIONS} connections, responses of 3 bytes. The proxy has one core, the upstream and wrk share the "
        "other. Medians, with the interquartile range; ratios are taken within a round. The CPU of `direct` is the "
        "upstream's own. `steal` and `others` are shares of all cores that the hypervisor and other processes used."
    )
    if options.rounds < ROUNDS_MIN:
        yield ""
        yield f"Fewer than {ROUNDS_MIN} rounds: too few for a result."


def disturbance(samples):
    """Describes how often other processes disturbed the run, and how many measurements were repeated."""
    taken = [sample for column in samples.values() for sample in column]
    repeats = sum(sample.attempts - 1 for sample in taken)
    still = sum(sample.others_percent > OTHERS_PERCENT_MAX for sample in taken)
    return (
        f"{repeats} of {len(taken) + repeats} measurements were repeated because other processes used more than "
        f"{OTHERS_PERCENT_MAX} % of the machine; {still} stayed disturbed in all {ATTEMPTS_MAX} attempts and count."
    )


# === the command ===


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS_MIN)
    parser.add_argument("--seconds", type=int, default=3, help="length of a measured round")
    parser.add_argument("--warm-up", type=int, default=2, metavar="SECONDS")
    parser.add_argument("--seed", type=int, default=1, help="of the order within each round")
    parser.add_argument("--only", type=lambda text: text.split(","), metavar="NAME,…", help=", ".join(CANDIDATES))
    parser.add_argument("--report-only", action="store_true", help="exit with 0 even if a target is missed")
    parser.add_argument("--write", type=Path, metavar="FILE", help=f"replace the text between {' and '.join(MARKERS)}")
    parser.add_argument("--tidegate", type=Path, default=tidegate_binary(), help="the binary to measure")
    ours = ["direct", "tidegate", "tidegate-refuse"]
    options = parse(parser, rounds=1, seconds=1, warm_up=1, only=ours)
    if unknown := set(options.only or []) - set(CANDIDATES):
        parser.error(f"unknown candidates: {', '.join(sorted(unknown))}; there are {', '.join(CANDIDATES)}")
    return options


def check_machine(peers, names):
    require("wrk")
    if missing := peers.missing(names):
        raise BenchError(
            f"missing: {', '.join(missing)}. Peers come with scripts/bench-deps, tidegate with "
            f"`cargo build --release --locked`. To measure some candidates only: --only {','.join(CANDIDATES[:3])}"
        )
    if not {0, 1} <= os.sched_getaffinity(0):
        raise BenchError("two cores are needed: one for the proxy, one for the load")


def run(options, directory):
    # `direct` is always measured: every figure is paired with it.
    names = [name for name in CANDIDATES if name in {"direct", *(options.only or CANDIDATES)}]
    peers = Peers(directory, options.tidegate)
    check_machine(peers, names)
    if options.write:
        split_at_markers(options.write, MARKERS)
    start = MachineTimes.now()
    with contextlib.ExitStack() as stack:
        upstream_port, upstream = peers.upstream(LOAD_CORE)
        stack.callback(upstream.stop)
        candidates = []
        for name in names:
            candidate = start_candidate(peers, name, upstream_port, upstream)
            stack.callback(candidate.close)
            warm_up(candidate, options)
            candidates.append(candidate)
        samples = run_rounds(candidates, upstream, options)
    return report(peers, options, samples, MachineTimes.now().since(start))


def start_candidate(peers, name, upstream_port, upstream):
    if name == "direct":
        return Candidate("direct", upstream_port, upstream)
    if name == "tidegate-refuse":
        return peers.start_refusing()
    return peers.start(name, upstream_port)


def report(peers, options, samples, spent):
    verdicts, missed = judge(samples)
    text = "\n".join([*setting(peers, options, spent), "", disturbance(samples), "", *table(samples), "", *verdicts])
    print(text)
    if options.write:
        write_section(options.write, MARKERS, text)
    return 1 if missed and not options.report_only else 0


def main():
    exit_on_sigterm()
    options = parse_options()
    try:
        with alone(options), tempfile.TemporaryDirectory(prefix="tidegate-bench-") as directory:
            return run(options, directory)
    except BenchError as error:
        print(f"gateway: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
