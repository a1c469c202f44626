#!/usr/bin/env python3
"""Runs the same drills on Tidegate, haproxy (maxconn and queue), nginx (limit_conn) and Envoy (adaptive concurrency).

Run by `make compare`, or alone: `bench/compare.py --scenarios load_sweep --only tidegate,haproxy --short`. Each gateway runs
alone in front of the same mock upstreams, to which the drill applies the faults of the scenario. The others are told the
scenario's numbers, Tidegate the URLs and nothing else. Goodput, the p99 of the highest priority and the recovery time come from
the report of the drill.
Exit code: 0 the run produced figures, 2 it did not. The result of the comparison does not affect it.
"""

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True  # The run leaves no files behind, not even bytecode caches.

from compare_peers import Contestants, Setting
from harness import (
    REPOSITORY,
    BenchError,
    MachineTimes,
    alone,
    exit_on_sigterm,
    machine_line,
    parse,
    split_at_markers,
    tidegate_binary,
    write_section,
)

MARKERS = ("<!-- compare:begin -->", "<!-- compare:end -->")
NAMES = ("tidegate", "haproxy", "nginx", "envoy")
SMOKE = REPOSITORY / "bench" / "smoke.toml"
SCENARIOS = ("load_sweep", "low_flood", "retry_storm", "slow_upstream", "capacity_halves", "zero_config")


def drill(options, scenario, port, upstreams):
    """Runs one drill and returns its report."""
    argv = [
        *(options.tidegate, "drill", scenario, "--target", f"http://127.0.0.1:{port}", "--json", "--no-progress"),
        *("--upstreams", ",".join(f"http://127.0.0.1:{upstream}" for upstream in upstreams), "--seed", options.seed),
        *(["--short"] if options.short else []),
    ]
    done = subprocess.run([str(arg) for arg in argv], capture_output=True, text=True, timeout=900)
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError:
        raise BenchError(f"the drill {scenario} exited with {done.returncode}:\n{done.stderr[-2000:]}") from None


def figure(report, what, of="all", phase=None):
    for found in report["figures"]:
        if (found["what"], found["of"], found["phase"]) == (what, of, phase):
            return found["value"]
    return None


def shown(value, digits):
    """A figure in so many digits; a report has a word in the place of one that is not finite."""
    if isinstance(value, str):
        return value
    return "–" if value is None else f"{value:.{digits}f}"


def lines_of(scenario, reports):
    """Formats one table per scenario: a row for each gateway, a column for each figure of the scenario."""
    first = next(iter(reports.values()))
    phases = [phase["name"] for phase in first["phases"]]
    groups = []
    for found in first["figures"]:
        if found["of"] not in groups and (found["of"].startswith("priority:") or found["of"] == "healthy"):
            groups.append(found["of"])
    groups = [group for group in groups if group != "priority:critical"]
    top = next((g for g in ("priority:high", "priority:normal", "priority:low") if g in groups), "all")
    columns = ["contestant", *(f"goodput {phase}" for phase in phases)]
    columns += [f"{top} served {phase}" for phase in phases]
    columns += [f"p99 ms {top} {phase}" for phase in phases]
    if "healthy" in groups and figure(first, "latency_p99_ms", "healthy", phases[0]) is not None:
        columns += [f"p99 ms healthy {phase}" for phase in phases]
    columns += ["failed", "recovery s", "late sends p99 ms"]
    rows = [columns, ["---"] * len(columns)]
    for name, report in reports.items():
        row = [name, *(shown(figure(report, "goodput_of_capacity", phase=phase), 2) for phase in phases)]
        row += [shown(figure(report, "goodput_of_offered", top, phase), 2) for phase in phases]
        row += [shown(figure(report, "latency_p99_ms", top, phase), 0) for phase in phases]
        if "healthy" in groups and figure(first, "latency_p99_ms", "healthy", phases[0]) is not None:
            row += [shown(figure(report, "latency_p99_ms", "healthy", phase), 0) for phase in phases]
        recovery = figure(report, "recovery_s")
        never = any(found["what"] == "recovery_s" and found["value"] is None for found in report["figures"])
        row += [
            shown(figure(report, "failed_share"), 3),
            "never" if never else shown(recovery, 1),
            shown((report.get("schedule") or {}).get("error_p99_ms"), 2),
        ]
        rows.append(row)
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    return f"**{scenario}**: {first['about']}\n\n{table}"


def report_text(options, peers, results, machine):
    versions = "\n".join(f"- {name}: {version}" for name, version in peers.versions().items() if name != "wrk")
    form = "in their short forms" if options.short else "in full"
    tables = "\n\n".join(lines_of(scenario, reports) for scenario, reports in results.items())
    return (
        f"Machine: {machine_line()}. Over the whole run the hypervisor stole {machine.steal_percent:.1f} % of the CPU "
        f"time.\n\n{versions}\n\nScenarios {form}, seed {options.seed}, one run each. Goodput is a share of capacity; "
        f"p99 is in milliseconds from when a request was due. Upstreams, gateway and generator share two cores.\n\n{tables}"
    )


def run(options, directory):
    peers = Contestants(directory, options.tidegate)
    if missing := peers.missing(options.only):
        raise BenchError(
            f"missing: {', '.join(missing)}. Peers come with scripts/bench-deps, tidegate with "
            "`cargo build --release --locked`."
        )
    if options.write:
        split_at_markers(options.write, MARKERS)
    start = MachineTimes.now()
    results = {}
    for scenario in options.scenarios:
        setting = Setting(scenario)
        for name in options.only:
            with contextlib.ExitStack() as stack:
                processes, ports = peers.upstreams(setting)
                for process in processes:
                    stack.callback(process.stop)
                gateway, port = peers.gateway(name, setting, ports)
                stack.callback(gateway.stop)
                print(f"{scenario} on {name} …", file=sys.stderr, flush=True)
                results.setdefault(scenario, {})[name] = drill(options, scenario, port, ports)
        # At once: a run that ends early has not been for nothing.
        print(lines_of(scenario, results[scenario]), file=sys.stderr, flush=True)
    text = report_text(options, peers, results, MachineTimes.now().since(start))
    print(text)
    if options.write:
        write_section(options.write, MARKERS, text)
    return 0


def words(text):
    return [word.strip() for word in text.split(",") if word.strip()]


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenarios", type=words, default=list(SCENARIOS), help="comma-separated scenarios")
    parser.add_argument("--only", type=words, default=list(NAMES), help="comma-separated gateways")
    parser.add_argument("--short", action="store_true", help="the scenarios' short forms")
    parser.add_argument("--seed", type=int, default=1, help="of the arrivals")
    parser.add_argument("--write", type=Path, metavar="FILE", help=f"replace the text between {' and '.join(MARKERS)}")
    parser.add_argument("--tidegate", type=Path, default=tidegate_binary(), help="the binary to use")
    options = parse(parser, scenarios=[str(SMOKE)], only=["tidegate"])
    if unknown := set(options.only) - set(NAMES):
        parser.error(f"unknown contestants: {', '.join(sorted(unknown))}")
    return options


def main():
    exit_on_sigterm()
    options = parse_options()
    try:
        with alone(options), tempfile.TemporaryDirectory(prefix="tidegate-compare-") as directory:
            return run(options, directory)
    except BenchError as error:
        print(f"compare: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
