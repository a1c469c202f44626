#!/usr/bin/env python3
"""Measures worker sessions: updates of progress that a manager takes in, dispatches meanwhile, and no-op tasks through a
session compared with the same worker over HTTP.

Run by `make bench`, or alone: `bench/progress.py --rounds 5`. The simulated workers and the manager share one process and
the machine's cores; CPU is that of the manager's two threads. Rounds of both links are interleaved, and ratios are taken
within a round. Exit code: 0 all targets hold, 1 a target is missed, 2 no figures.
"""

import argparse
import json
import statistics
import subprocess
import sys

sys.dont_write_bytecode = True  # The run leaves no files behind, not even bytecode caches.

from harness import REPOSITORY, BenchError, alone, exit_on_sigterm, machine_line, parse

UPDATES_PER_S_MIN = 95_000
CORES_MAX = 1.1
DISPATCH_P99_MS_MAX = 10
RATE_RATIO_MIN = 2
FRAMES_PER_TASK_MAX = 3


def bench(profile, *arguments):
    """Runs the load tool and returns its report."""
    # The features of the whole workspace, so that nothing is built again for it.
    argv = ["cargo", "bench", "--workspace", "--locked", "--quiet", "--bench", "progress"]
    argv += ["--profile", "dev"] if profile == "debug" else []
    done = subprocess.run([*argv, "--", *arguments], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise BenchError(f"the load tool failed: {' '.join(arguments)}")
    return json.loads(done.stdout.splitlines()[-1])


def noop(options, link, *more):
    return bench(options.profile, "noop", "--tasks", str(options.tasks), "--link", link, *more)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="rounds of no-op tasks by both links")
    parser.add_argument("--tasks", type=int, default=6_000, help="no-op tasks of a round")
    parser.add_argument("--sessions", type=int, default=1_000, help="simulated workers")
    parser.add_argument("--rate", type=int, default=100, help="updates of each worker in a second")
    parser.add_argument("--seconds", type=int, default=5, help="time of the flood")
    parser.set_defaults(profile="release")
    options = parse(parser, profile="debug", rounds=1, tasks=50, sessions=20, rate=20, seconds=1)
    exit_on_sigterm()
    with alone(options):
        print(machine_line())
        flood = [str(part) for name in ("sessions", "rate", "seconds") for part in (f"--{name}", getattr(options, name))]
        flooded = bench(options.profile, "flood", *flood)
        rounds = [(noop(options, "session"), noop(options, "http")) for _ in range(options.rounds)]
        counted = noop(options, "session", "--frames")
    ratios = [session["tasks_per_s"] / http["tasks_per_s"] for session, http in rounds]
    cores = flooded["progress_cores"] + flooded["manager_cores"]
    p99_ms = flooded["dispatch_ms"]["flooded"]["p99"]
    figures = [
        ("updates taken in per second", flooded["updates_per_s"], UPDATES_PER_S_MIN, "at least"),
        ("cores of the manager meanwhile", cores, CORES_MAX, "at most"),
        ("p99 of a dispatch meanwhile, ms", p99_ms, DISPATCH_P99_MS_MAX, "at most"),
        ("no-op tasks, session / HTTP", statistics.median(ratios), RATE_RATIO_MIN, "at least"),
        ("frames of a task", counted["frames_per_task"], FRAMES_PER_TASK_MAX, "at most"),
    ]
    missed = False
    for name, value, target, bound in figures:
        holds = value >= target if bound == "at least" else value <= target
        missed |= not holds
        print(f"{name:34} {value:12,.2f}  {bound} {target:,}  {'held' if holds else 'MISSED'}")
    print(f"{flooded['sessions']} sessions, {flooded['resident_mib']:.0f} MiB with the simulated workers")
    sys.exit(1 if missed and not options.smoke else 0)


if __name__ == "__main__":
    try:
        main()
    except BenchError as error:
        sys.exit(f"no figures: {error}")
