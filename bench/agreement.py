#!/usr/bin/env python3
"""Compares simulations with drills: goodput and refusals of every gateway scenario, by phase.

`bench/agreement.py --short` runs each shipped scenario in both ways with the same seed. A difference of more than 15 % is a
finding for docs/testing.md, not a failure. Exit code: 0 the run produced figures, 2 it did not.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True  # The run leaves no files behind, not even bytecode caches.

from harness import REPOSITORY, BenchError, alone, machine_line, parse, split_at_markers, tidegate_binary, write_section

MARKERS = ("<!-- agreement:begin -->", "<!-- agreement:end -->")
WHATS = ("goodput_of_offered", "refused_share")
# Below this share ratios are not compared: a single request changes them by many percent.
SHARE_LEAST = 0.02


def run(options, mode, name):
    argv = [options.tidegate, mode, name, "--json", "--seed", options.seed, *(["--short"] if options.short else [])]
    argv += ["--no-progress"] if mode == "drill" else []
    done = subprocess.run([str(arg) for arg in argv], capture_output=True, text=True, timeout=900)
    try:
        report = json.loads(done.stdout)
    except json.JSONDecodeError:
        raise BenchError(f"tidegate {mode} {name} exited with {done.returncode}:\n{done.stderr[-1000:]}") from None
    return report


def figures(report):
    return {
        (figure["phase"], figure["what"]): figure["value"]
        for figure in report["figures"]
        if figure["of"] == "all" and figure["what"] in WHATS and figure["phase"]
    }


def differs(simulated, drilled):
    larger = max(simulated, drilled)
    return larger >= SHARE_LEAST and abs(simulated - drilled) > 0.15 * larger


def rows_of(name, simulated, drilled):
    ours, theirs = figures(simulated), figures(drilled)
    late = (drilled.get("schedule") or {}).get("error_p99_ms", 0.0)
    for phase in [phase["name"] for phase in simulated["phases"]]:
        cells = []
        apart = False
        for what in WHATS:
            one, other = ours.get((phase, what)), theirs.get((phase, what))
            if one is None or other is None:
                cells += ["–", "–"]
                continue
            cells += [f"{one:.3f}", f"{other:.3f}"]
            apart |= differs(one, other)
        yield f"| {name} | {phase} | " + " | ".join(cells) + f" | {late:.1f} | {'**yes**' if apart else 'no'} |"


def report(options, results):
    lines = [
        f"`bench/agreement.py{' --short' if options.short else ''}`, seed {options.seed}, on {machine_line()}.",
        "",
        "| scenario | phase | goodput, sim | drill | refused, sim | drill | late sends p99 ms | apart |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, simulated, drilled in results:
        lines += rows_of(name, simulated, drilled)
    return "\n".join(lines)


def scenarios():
    for path in sorted((REPOSITORY / "scenarios").glob("*.toml")):
        if "[upstreams]" in path.read_text(encoding="utf-8"):
            yield path.stem


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="the scenarios' short forms")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", type=Path, metavar="FILE", help=f"replace the text between {' and '.join(MARKERS)}")
    parser.add_argument("--tidegate", type=Path, default=tidegate_binary(), help="the binary to use")
    parser.set_defaults(scenarios=None)
    options = parse(parser, scenarios=[str(REPOSITORY / "bench" / "smoke.toml")])
    try:
        if options.write:
            split_at_markers(options.write, MARKERS)
        with alone(options):
            results = []
            for name in options.scenarios or scenarios():
                print(f"{name} …", file=sys.stderr, flush=True)
                results.append((name, run(options, "sim", name), run(options, "drill", name)))
        text = report(options, results)
        print(text)
        if options.write:
            write_section(options.write, MARKERS, text)
        return 0
    except BenchError as error:
        print(f"agreement: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
