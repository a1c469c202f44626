#!/usr/bin/env python3
"""Measures tasks: durable submissions, no-op tasks through the whole path compared with Celery on Redis, and waits of tasks of
50 ms for executors of one slot, in virtual time and with real processes, compared with the loop of the design document.

Run by `make bench`, or alone: `bench/tasks.py --rounds 3`; `--quick` takes one or two minutes. All processes share the
machine's cores. Rounds are interleaved and shuffled; ratios are taken within a round. Waits are judged in virtual time,
because a shared machine adds delays. Exit code: 0 all targets hold, 1 a target is missed, 2 no figures.
"""

import argparse
import itertools
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True  # The run leaves no files behind, not even bytecode caches.

from celery_peer import celery_is_here, celery_version, run_celery
from harness import (
    REPOSITORY,
    BenchError,
    MachineTimes,
    alone,
    exit_on_sigterm,
    machine_line,
    parse,
    require,
    split_at_markers,
    tidegate_binary,
    version_of,
    write_section,
)
from ingest import VOLATILE, file_system
from task_findings import PATHS, WAITS_MAX, Findings, judge, tables
from task_submissions import by_http, durable, in_process
from task_waits import burst, messages, overshoot_ms, saturated, seed_loop, waits

ROUNDS_MIN = 3
SLOTS = 3
JUDGED = "pull"
BESIDE = "optimistic,semaphore,queue,reserve,seed"
PARTS = ("submissions", "paths", "waits")
MARKERS = ("<!-- tasks:begin -->", "<!-- tasks:end -->")


class Plan:
    """Durations and sizes of a run."""

    def __init__(self, options):
        self.submit_s = 2 if options.quick else 5
        self.noop_s = 1 if options.quick else 3
        self.celery_tasks = 400 if options.quick else 2_000
        self.wait_s = 5 if options.quick else 30
        self.saturated_s = 3 if options.quick else 10
        # The p99 of 20,000 correlated waits varies by a fifth from seed to seed.
        self.simulated_tasks = {JUDGED: 100_000 if options.quick else 1_000_000, BESIDE: 20_000}
        if options.smoke:
            self.submit_s = self.wait_s = self.saturated_s = 1
            self.simulated_tasks = {JUDGED: 2_000, BESIDE: 2_000}


class Bench:
    def __init__(self, options, directory):
        self.options, self.directory, self.plan = options, directory, Plan(options)
        self.findings, self.numbers = Findings(), itertools.count(1)

    def folder(self):
        """Creates a new folder on a disk for each measurement."""
        path = self.directory / f"{next(self.numbers)}"
        path.mkdir()
        return path

    def run(self):
        self.simulate()
        shuffle = random.Random(self.options.seed).shuffle
        for number in range(1, self.options.rounds + 1):
            steps = [*self.submission_steps(), *self.path_steps()]
            shuffle(steps)
            for name, step in steps:
                say(f"round {number}/{self.options.rounds}, {name}: {step()}")
        if "waits" in self.options.parts:
            self.wait_with_processes()
        return self.findings

    # === rounds ===

    def submission_steps(self):
        if "submissions" in self.options.parts:
            yield "durable submissions", self.submissions

    def submissions(self):
        taken = durable(self.folder(), self.options.tidegate, self.plan.submit_s)
        self.findings.submitted.append(taken)
        return taken

    def path_steps(self):
        if "paths" not in self.options.parts:
            return
        ours, plan = self.options.tidegate, self.plan
        rates = {
            "in-process": lambda: in_process(self.folder(), ours, plan.noop_s, SLOTS).rate,
            "by-http": lambda: by_http(self.folder(), ours, plan.noop_s, SLOTS).rate,
            "celery": lambda: run_celery(self.folder(), plan.celery_tasks, SLOTS),
            "celery-durable": lambda: run_celery(self.folder(), plan.celery_tasks // 2, SLOTS, durable=True),
        }
        for name in PATHS:
            yield PATHS[name], lambda name=name: self.path(name, rates[name])

    def path(self, name, rate):
        self.findings.done.setdefault(name, []).append(rate())
        return f"{self.findings.done[name][-1]:.0f}/s"

    # === waits ===

    def simulate(self):
        """Returns the tables of `tidegate sim` by executors, load and placement."""
        for (executors, load), (placements, tasks) in itertools.product(WAITS_MAX, self.plan.simulated_tasks.items()):
            argv = [self.options.tidegate, "sim", "--compare", f"placement={placements}", "--executors", executors]
            argv += ["--load", load, "--tasks", tasks, "--seed", self.options.seed]
            done = subprocess.run([str(arg) for arg in argv], capture_output=True, text=True)
            rows = [line.strip("| ").split("|") for line in done.stdout.splitlines()[2:] if line.startswith("|")]
            if done.returncode or not rows:
                raise BenchError(f"the simulation gave no table: {done.stderr.strip()}")
            for row in rows:
                cells = [cell.strip() for cell in row]
                self.findings.simulated[executors, load, cells[2]] = [*cells, str(tasks)]

    def wait_with_processes(self):
        binary, plan, seed, found = self.options.tidegate, self.plan, self.options.seed, self.findings
        for executors, load in WAITS_MAX:
            found.overshoot.append(overshoot_ms())
            found.real[executors, load] = waits(self.folder(), binary, executors, load, plan.wait_s, seed)
            say(f"{executors} executors at {load:.0%}:", found.real[executors, load])
        found.seed[3, 0.8] = seed_loop(self.folder(), binary, 3, 0.8, plan.wait_s, seed)
        found.messages = messages(self.folder(), binary, 3, 0.8, min(plan.wait_s, 10), seed)
        say("what is said:", found.messages)
        found.saturation = saturated(self.folder(), binary, 3, plan.saturated_s)
        found.bursts = [burst(self.folder(), binary, 3) for _ in range(self.options.rounds)]
        found.overshoot.append(overshoot_ms())


def say(*what):
    print(*what, file=sys.stderr, flush=True)


# === reporting ===


def setting(options, findings, spent):
    yield f"Machine: {machine_line()}. Over the whole run the hypervisor stole {spent.steal_percent:.1f} % of the CPU time."
    if findings.submitted:
        others = statistics.median(each.others_percent for each in findings.submitted)
        yield f"While tasks were submitted, all processes but Tidegate, wrk among them, took {others:.0f} % of it (median)."
    yield ""
    yield f"- tidegate: {version_of([options.tidegate, '--version'])}"
    if "paths" in options.parts:
        yield f"- Celery: {celery_version()}; Redis {version_of(['redis-server', '--version'])}"
    yield f"- {options.rounds} interleaved rounds in shuffled order (seed {options.seed}). Medians, with the interquartile range."
    if options.quick or options.rounds < ROUNDS_MIN:
        yield f"- A look, not a result: that takes {ROUNDS_MIN} rounds, and not --quick."
    yield ""


def report(options, findings, spent):
    verdicts, missed = judge(findings)
    text = "\n".join([*setting(options, findings, spent), *tables(findings), *verdicts])
    print(text)
    if options.write:
        write_section(options.write, MARKERS, text)
    if missed:
        say("tasks: missed:", *(f"\n  {each}" for each in missed))
    return 1 if missed and not options.report_only else 0


# === the command ===


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, help=f"default {ROUNDS_MIN}, 1 with --quick")
    parser.add_argument("--quick", action="store_true", help="a short run of one or two minutes")
    parser.add_argument("--seed", type=int, default=1, help="of the arrivals, and of the order within each round")
    parser.add_argument("--parts", type=lambda text: text.split(","), default=PARTS, metavar="NAME,…", help=", ".join(PARTS))
    parser.add_argument("--directory", type=Path, help="folder of the stores; default target/")
    parser.add_argument("--report-only", action="store_true", help="exit with 0 even if a target is missed")
    parser.add_argument("--write", type=Path, metavar="FILE", help=f"replace the text between {' and '.join(MARKERS)}")
    parser.add_argument("--tidegate", type=Path, default=tidegate_binary(), help="the binary to measure")
    options = parse(parser, quick=True, parts=["submissions", "waits"])
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"unknown parts: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    options.rounds = options.rounds or (1 if options.quick else ROUNDS_MIN)
    options.tidegate = options.tidegate.absolute()
    return options


def check_machine(options):
    if not options.tidegate.exists():
        raise BenchError(f"{options.tidegate} is missing: cargo build --release --locked")
    if set(options.parts) & {"submissions", "paths"}:
        require("wrk")
    if "paths" in options.parts:
        require("redis-server")
        if not celery_is_here():
            raise BenchError("Celery is missing: scripts/bench-deps. To measure without it: --parts submissions,waits")


def main():
    exit_on_sigterm()
    options = parse_options()
    parent = options.directory or REPOSITORY / "target"
    try:
        check_machine(options)
        if options.write:
            split_at_markers(options.write, MARKERS)
        parent.mkdir(parents=True, exist_ok=True)
        if (kind := file_system(parent)) in VOLATILE:
            raise BenchError(f"{parent} is on {kind}, where nothing lasts: give a --directory on a disk")
        with alone(options), tempfile.TemporaryDirectory(prefix="tidegate-bench-", dir=parent) as directory:
            start = MachineTimes.now()
            findings = Bench(options, Path(directory)).run()
            return report(options, findings, MachineTimes.now().since(start))
    except BenchError as error:
        print(f"tasks: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
