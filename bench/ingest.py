#!/usr/bin/env python3
"""Compares the ingestion with rsyslog and syslog-ng from end to end: records per second, CPU, records lost by a kill,
time to an ack, and memory under overload.

Run by `make bench`, or alone: `bench/ingest.py --rounds 3`; `--quick` takes less than a minute. All
receivers store on the same disk, and each has the same two cores, shared with its sender. Rounds are interleaved and
shuffled; ratios are taken within a round. Exit code: 0 all targets hold, 1 a target is missed, 2 no figures.
"""

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

sys.dont_write_bytecode = True  # The run leaves no files behind, not even bytecode caches.

from harness import (
    REPOSITORY,
    BenchError,
    MachineTimes,
    alone,
    exit_on_sigterm,
    machine_line,
    parse,
    split_at_markers,
    spread,
    tidegate_binary,
    write_section,
)
from ingest_measures import OURS, kill, latency, measure, overload
from receivers import Receivers
from usage_senders import Workload

PEERS = ["rsyslog", "rsyslog-durable", "syslog-ng", "syslog-ng-durable"]
RATE_MIN = {"tidegate-frames": 150_000, "tidegate-lines": 100_000}
P99_MS_MAX = 250
BUDGETS_MIB = (512, 64)
ROUNDS_MIN = 3
# File systems in memory: data there survives a killed process but is not durable.
VOLATILE = {"tmpfs", "ramfs"}
MARKERS = ("<!-- ingest:begin -->", "<!-- ingest:end -->")


@dataclass
class Findings:
    samples: dict
    kills: dict
    latencies: dict
    overloads: list = field(default_factory=list)

    @classmethod
    def none_yet(cls, names):
        ours = [name for name in names if name in OURS]
        return cls({name: [] for name in names}, {name: [] for name in names}, {name: [] for name in ours})


class Plan:
    """Number of lines for each receiver."""

    def __init__(self, options, directory):
        paced_seconds = 2 if options.quick else 10
        self.overload_seconds = 1 if options.smoke else 3 if options.quick else 15
        lines = options.lines or (200_000 if options.quick else 1_000_000)
        # Receivers that sync every line get as many lines as they store in several seconds. rsyslog queues all
        # lines before it stores the first.
        durable_lines = {"rsyslog-durable": 500, "syslog-ng-durable": lines // 10}
        self.all = Workload.write(directory / "usage.lp", lines, options.seed)
        self.fewer = {name: self.all.head(min(count, lines)) for name, count in durable_lines.items()}
        # Half of the target rate, for several seconds.
        self.paced = {name: self.all.head(min(rate * paced_seconds // 2, lines)) for name, rate in RATE_MIN.items()}

    def of(self, name):
        return self.fewer.get(name, self.all)


# === the rounds ===


def run_rounds(receivers, plan, names, options):
    findings = Findings.none_yet(names)
    shuffle = random.Random(options.seed).shuffle
    for number in range(1, options.rounds + 1):
        shuffle(names)
        for name in names:
            with receivers.make(name) as receiver:
                findings.samples[name].append(measure(receiver, plan.of(name)))
            with receivers.make(name) as receiver:
                findings.kills[name].append(kill(receiver, plan.all))
            rate = findings.samples[name][-1].rate
            say(f"round {number}/{options.rounds}, {name}: {rate:.0f}/s", findings.kills[name][-1])
        for name, taken in findings.latencies.items():
            with receivers.make(name) as node:
                taken.append(latency(node, plan.paced[name], RATE_MIN[name] // 2))
            say(f"round {number}/{options.rounds}, {name}:", findings.latencies[name][-1])
    for mib in BUDGETS_MIB:
        with receivers.make("tidegate-frames", [f"ingest.memory_mib={mib}"]) as node:
            findings.overloads.append(overload(node, plan.all, plan.overload_seconds))
        say("overload:", findings.overloads[-1])
    return findings


def say(*what):
    print(*what, file=sys.stderr, flush=True)


# === reporting ===


def column(samples, field_name):
    return [getattr(sample, field_name) for sample in samples]


def against_rsyslog(samples, name):
    """Returns ratios within the same round."""
    if "rsyslog" not in samples:
        return "–"
    pairs = zip(column(samples[name], "rate"), column(samples["rsyslog"], "rate"), strict=True)
    return spread([ours / theirs for ours, theirs in pairs], 2)


def table(findings):
    yield "| receiver | lines/s | × rsyslog | CPU µs per line | sender's | dropped | killed: counted on | lost | twice |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for name in [name for name in OURS + PEERS if name in findings.samples]:
        samples, kills = findings.samples[name], findings.kills[name]
        cells = [
            *(name, spread(column(samples, "rate"), 0), against_rsyslog(findings.samples, name)),
            *(spread(column(samples, "cpu_us"), 2), spread(column(samples, "sender_cpu_us"), 2)),
            spread(column(samples, "dropped"), 0),
            *(spread(column(kills, each), 0) for each in ("counted_on", "lost", "twice")),
        ]
        yield f"| {' | '.join(cells)} |"


def rate_verdicts(findings):
    for name, least in RATE_MIN.items():
        if name in findings.samples:
            rates = column(findings.samples[name], "rate")
            yield f"{name}, lines/s ≥ {least}: {spread(rates, 0)}", statistics.median(rates) >= least


def kill_verdicts(findings):
    if kills := findings.kills.get("tidegate-frames"):
        lost, twice = (sum(column(kills, each)) for each in ("lost", "twice"))
        text = f"tidegate-frames, killed {len(kills)} times: {lost} acked records lost, {twice} stored twice"
        yield text, lost == twice == 0


def latency_verdicts(findings):
    for name, taken in findings.latencies.items():
        asked, what = RATE_MIN[name] // 2, {"tidegate-frames": "send to ack", "tidegate-lines": "send to stored"}[name]
        p50, p99, rate = (column(taken, each) for each in ("p50_ms", "p99_ms", "rate"))
        # A sender below the requested rate was held back, and its delays belong to a lower rate.
        kept = statistics.median(rate) >= 0.9 * asked
        text = f"{name}, {what} at {asked}/s, p99 < {P99_MS_MAX} ms: {spread(p99, 1)} ms, p50 {spread(p50, 1)} ms"
        text += "" if kept else f", but only {statistics.median(rate):.0f}/s were taken"
        yield text, kept and statistics.median(p99) < P99_MS_MAX


def memory_verdicts(findings):
    for number, taken in enumerate(findings.overloads):
        budget_mib, most_mib = taken.budget_bytes / 2**20, taken.memory_bytes_max / 2**20
        above, idle = taken.rss_above_idle_mib, taken.rss_idle_kib / 1024
        text = (
            f"overload, budget {budget_mib:.0f} MiB: {most_mib:.1f} MiB under way at most; the process was at most "
            f"{above:.0f} MiB above its idle {idle:.0f}; {taken.rate:.0f} records/s stored meanwhile"
        )
        # The buffers of the store are not part of the budget; with a large budget they must fit into it as well.
        yield text, most_mib <= budget_mib and (number > 0 or above <= budget_mib)


def judge(findings):
    """Returns one line per target, and the number of missed targets."""
    lines, missed = [], 0
    for verdicts in (rate_verdicts, latency_verdicts, memory_verdicts, kill_verdicts):
        for text, holds in verdicts(findings):
            missed += not holds
            lines.append(f"- {text}: {'holds' if holds else 'MISSED'}")
    return lines, missed


def setting(receivers, plan, options, findings, spent):
    others = [sample.others_percent for taken in findings.samples.values() for sample in taken]
    yield f"Machine: {machine_line()}. Over the whole run the hypervisor stole {spent.steal_percent:.1f} % of the CPU time."
    yield (
        f"Other processes used {statistics.median(others):.1f} % of the machine (median), {max(others):.1f} % at most. "
        f"4 KiB are on the disk in {sync_ms(receivers.directory):.2f} ms (median)."
    )
    yield ""
    yield from (f"- {name}: {version}" for name, version in receivers.versions(findings.samples))
    yield ""
    fewer = ", ".join(f"{work.lines} to {name}" for name, work in plan.fewer.items() if name in findings.samples)
    yield (
        f"{options.rounds} interleaved rounds in shuffled order (seed {options.seed}) of {plan.all.lines} lines"
        f"{f' ({fewer})' if fewer else ''}, {plan.all.bytes / plan.all.lines:.0f} bytes each. Receiver and sender share "
        f"two cores. Medians, with the interquartile range; ratios are taken within a round."
    )
    if options.quick or options.rounds < ROUNDS_MIN:
        yield ""
        yield f"A look, not a result: that takes {ROUNDS_MIN} rounds, and not --quick."


def sync_ms(directory):
    """Returns the time of a synced write to this disk."""
    times = []
    with tempfile.TemporaryFile(dir=directory) as file:
        for _ in range(30):
            start = time.monotonic()
            os.write(file.fileno(), bytes(4096))
            os.fdatasync(file.fileno())
            times.append((time.monotonic() - start) * 1e3)
    return statistics.median(times)


def report(receivers, plan, options, findings, spent):
    verdicts, missed = judge(findings)
    text = "\n".join([*setting(receivers, plan, options, findings, spent), "", *table(findings), "", *verdicts])
    print(text)
    if options.write:
        write_section(options.write, MARKERS, text)
    return 1 if missed and not options.report_only else 0


# === the command ===


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, help=f"default {ROUNDS_MIN}, 1 with --quick")
    parser.add_argument("--lines", type=int, help="lines per measurement; default 1000000, 200000 with --quick")
    parser.add_argument("--quick", action="store_true", help="a short run, in less than a minute")
    parser.add_argument("--seed", type=int, default=1, help="of the lines, and of the order within each round")
    parser.add_argument("--only", type=lambda text: text.split(","), metavar="NAME,…", help=", ".join(OURS + PEERS))
    parser.add_argument("--directory", type=Path, help="folder of the stores; default target/; must not be in memory")
    parser.add_argument("--report-only", action="store_true", help="exit with 0 even if a target is missed")
    parser.add_argument("--write", type=Path, metavar="FILE", help=f"replace the text between {' and '.join(MARKERS)}")
    parser.add_argument("--tidegate", type=Path, default=tidegate_binary(), help="the binary to measure")
    options = parse(parser, quick=True, lines=50_000, only=OURS)
    if unknown := set(options.only or []) - set(OURS + PEERS):
        parser.error(f"unknown receivers: {', '.join(sorted(unknown))}; there are {', '.join(OURS + PEERS)}")
    options.rounds = options.rounds or (1 if options.quick else ROUNDS_MIN)
    options.tidegate = options.tidegate.absolute()
    return options


def check_machine(receivers, names):
    if missing := receivers.missing(names):
        raise BenchError(
            f"missing: {', '.join(missing)}. rsyslog and syslog-ng come with scripts/bench-deps, tidegate with "
            f"`cargo build --release --locked`. To measure without the peers: --only {','.join(OURS)}"
        )
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        raise BenchError("two cores are needed: the receiver and its sender share them")
    os.sched_setaffinity(0, cores)
    if (kind := file_system(receivers.directory)) in VOLATILE:
        raise BenchError(f"{receivers.directory} is on {kind}, where nothing lasts: give a --directory on a disk")


def file_system(directory):
    """Returns the file system type of a folder, from the longest matching mount point."""
    with open("/proc/mounts") as mounts:
        kinds = {Path(line.split()[1]): line.split()[2] for line in mounts}
    path = directory.resolve()
    return next(kinds[above] for above in (path, *path.parents) if above in kinds)


def run(options, directory):
    receivers = Receivers(directory, options.tidegate)
    names = [name for name in OURS + PEERS if name in (options.only or OURS + PEERS)]
    check_machine(receivers, names)
    if options.write:
        split_at_markers(options.write, MARKERS)
    start = MachineTimes.now()
    plan = Plan(options, directory)
    findings = run_rounds(receivers, plan, names, options)
    return report(receivers, plan, options, findings, MachineTimes.now().since(start))


def main():
    exit_on_sigterm()
    options = parse_options()
    parent = options.directory or REPOSITORY / "target"
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with alone(options), tempfile.TemporaryDirectory(prefix="tidegate-bench-", dir=parent) as directory:
            return run(options, Path(directory))
    except BenchError as error:
        print(f"ingest: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
