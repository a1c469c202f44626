#!/usr/bin/env python3
"""Compares load generators on one trivial server: maximum rate of one core, accuracy of a fixed rate, and behaviour in a stall.

`bench/generator.py --rounds 12`, after `cargo build --release --locked -p tidegate-testkit --example generator_speed`.
scripts/bench-deps installs wrk. oha is used if it is on the PATH or in target/bench-oha:
`cargo install oha --root target/bench-oha`. Rounds are interleaved and shuffled, and every ratio is taken within a round.
Exit code: 0 all targets hold, 1 a target is missed, 2 the run produced no figures.
"""

import argparse
import contextlib
import json
import os
import random
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

sys.dont_write_bytecode = True  # The run leaves no files behind, not even bytecode caches.

from harness import (
    LOAD_CORE,
    PROXY_CORE,
    REPOSITORY,
    BenchError,
    MachineTimes,
    alone,
    exit_on_sigterm,
    free_ports,
    listens,
    machine_line,
    parse,
    pin_to,
    require,
    run_wrk,
    split_at_markers,
    spread,
    tidegate_binary,
    version_of,
    wait_until,
    write_section,
)
from peers import Peers

# HTTP/2 with prior knowledge, as behind a proxy.
NGINX_HTTP2 = """
  server {{
    listen 127.0.0.1:{port} http2 backlog=4096;
    location / {{ default_type text/plain; return 200 "ok\\n"; }}
  }}
"""
CONNECTIONS = 64
STREAMS = 64
RATE = 10_000
# The same setting as a drill with --target.
AWAKE_US = 100
# One second of six is a stall, so the true p90 is 400 ms and the true p99 940 ms.
STALL_RATE, STALL_SECONDS, STALL_AT_S, STALL_S = 1_000, 6, 2, 1
STALL_CONNECTIONS = 2_000
STALL_TRUTH_MS = {"p90_ms": 400, "p99_ms": 940}
STALL_SHARE_MAX = 0.05
SATURATED_MIN = 30_000
ERROR_P99_MS_MAX = 1
OTHERS_PERCENT_MAX = 5
ROUNDS_MIN = 12
MARKERS = ("<!-- generator:begin -->", "<!-- generator:end -->")


@dataclass
class Sample:
    """Figures of one tool in one case of one round. A figure that a tool does not report is None."""

    rate: float
    cpu_us: float
    p50_ms: float
    p90_ms: float | None
    p99_ms: float
    error_p99_ms: float | None
    others_percent: float


# === the tools ===


class Ours:
    """Generator of this repository. The number of sent requests is taken from the server."""

    def __init__(self, program, http2=False):
        self.name = "tidegate, HTTP/2" if http2 else "tidegate"
        self.speaks = "http2" if http2 else "http1"
        self.program = program
        self.flags = ["--connections", 1, "--streams", STREAMS, "--http2"] if http2 else []
        self.cases = ("saturate",) if http2 else ("saturate", "rate", "stall")

    def run(self, port, seconds, rate=None, connections=CONNECTIONS):
        argv = [self.program, f"http://127.0.0.1:{port}", "--seconds", seconds, "--connections", connections]
        argv += ["--busy-wait-us", AWAKE_US]
        result = marked(output_of([*argv, *self.flags, *(["--rate", rate] if rate else [])], seconds))
        if result["failed"]:
            raise BenchError(f"{self.name}: {result['failed']} requests failed")
        return result


class Wrk:
    """wrk: closed loop without a rate, so only the maximum rate is compared."""

    name = "wrk"
    speaks = "http1"
    cases = ("saturate",)

    def run(self, port, seconds, rate=None, connections=CONNECTIONS):
        result = run_wrk(port, "report.lua", seconds, connections)
        if result["socket_errors"] or result["status_errors"]:
            raise BenchError(f"wrk saw {result}")
        return {
            "requests": result["requests"],
            "seconds": result["duration_us"] / 1e6,
            "p50_ms": result["p50_us"] / 1e3,
            "p99_ms": result["p99_us"] / 1e3,
        }


class Oha:
    """oha: with a rate it corrects latencies for requests that were due and not sent."""

    name = "oha"
    speaks = "http1"
    cases = ("saturate", "rate", "stall")

    def __init__(self, program):
        self.program = program

    def run(self, port, seconds, rate=None, connections=CONNECTIONS):
        paced = ["-q", rate, "--latency-correction"] if rate else []
        argv = [self.program, "--no-tui", "--output-format", "json", "-z", f"{seconds}s", "-c", connections, *paced]
        text = output_of([*argv, f"http://127.0.0.1:{port}/"], seconds)
        result = json.loads(text[text.index("{") :])
        percentiles = result["latencyPercentiles"]
        return {
            "requests": sum(result["statusCodeDistribution"].values()),
            "seconds": result["summary"]["total"],
            **{f"{name}_ms": percentiles[name] * 1e3 for name in ("p50", "p90", "p99")},
        }


def output_of(argv, seconds):
    argv = [str(arg) for arg in argv]
    done = subprocess.run(
        argv, capture_output=True, text=True, timeout=seconds + 30, preexec_fn=pin_to(LOAD_CORE)
    )
    if done.returncode:
        raise BenchError(f"{Path(argv[0]).name} failed: {done.stderr[-2000:]}")
    return done.stdout


def marked(output):
    for line in output.splitlines():
        if line.startswith("RESULT "):
            return json.loads(line.removeprefix("RESULT "))
    raise BenchError(f"no result:\n{output}")


def find_oha():
    own = REPOSITORY / "target" / "bench-oha" / "bin" / "oha"
    return own if own.exists() else shutil.which("oha")


# === measuring ===


def children_cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@contextlib.contextmanager
def stalled(server):
    """Stops the whole server for one second (SIGSTOP); the kernel still accepts connections."""

    def stall():
        time.sleep(STALL_AT_S)
        os.killpg(server.pid, signal.SIGSTOP)
        time.sleep(STALL_S)
        os.killpg(server.pid, signal.SIGCONT)

    thread = threading.Thread(target=stall)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def measure(tool, case, port, server, seconds):
    machine, cpu, own = MachineTimes.now(), server.cpu_seconds(), children_cpu_seconds()
    if case == "saturate":
        result = tool.run(port, seconds)
    elif case == "rate":
        result = tool.run(port, seconds, RATE)
    else:
        with stalled(server):
            result = tool.run(port, STALL_SECONDS, STALL_RATE, STALL_CONNECTIONS)
    used = children_cpu_seconds() - own
    spent = MachineTimes.now().since(machine)
    if not result["requests"]:
        raise BenchError(f"{tool.name}, {case}: nothing was answered")
    return Sample(
        rate=result["requests"] / result["seconds"],
        cpu_us=used * 1e6 / result["requests"],
        p50_ms=result["p50_ms"],
        p90_ms=result.get("p90_ms"),
        p99_ms=result["p99_ms"],
        error_p99_ms=result.get("error_p99_ms"),
        others_percent=spent.others_percent(used + server.cpu_seconds() - cpu),
    )


def run_rounds(tools, servers, options):
    turns = [(tool, case) for tool in tools for case in tool.cases if case in options.cases]
    samples = {(tool.name, case): [] for tool, case in turns}
    for tool in tools:
        tool.run(servers[tool.speaks][0], options.warm_up)
    shuffle = random.Random(options.seed).shuffle
    for number in range(1, options.rounds + 1):
        shuffle(turns)
        for tool, case in turns:
            samples[tool.name, case].append(measure(tool, case, *servers[tool.speaks], options.seconds))
        saturated = {name: taken[-1] for (name, case), taken in samples.items() if case == "saturate"}
        progress = "  ".join(f"{name} {sample.rate:.0f}" for name, sample in saturated.items())
        print(f"round {number}/{options.rounds}, requests per second: {progress}", file=sys.stderr, flush=True)
    return samples


# === reporting ===


def column(samples, key, field):
    return [getattr(sample, field) for sample in samples[key]]


def cell(samples, key, field, digits):
    values = column(samples, key, field)
    return "–" if values[0] is None else spread(values, digits)


def table(samples):
    yield "| case | tool | requests/s | CPU µs each | p50 ms | p90 ms | p99 ms | schedule error p99 ms | others % |"
    yield "|---|---|---|---|---|---|---|---|---|"
    names = {
        "saturate": "as fast as it can",
        "rate": f"{RATE:,}/s",
        "stall": f"{STALL_RATE:,}/s, {STALL_S} s stall",
    }
    for case, text in names.items():
        for key in (key for key in samples if key[1] == case):
            fields = [("rate", 0), ("cpu_us", 1), ("p50_ms", 2), ("p90_ms", 1), ("p99_ms", 2), ("error_p99_ms", 3)]
            cells = [text, key[0], *(cell(samples, key, *field) for field in fields)]
            yield f"| {' | '.join([*cells, cell(samples, key, 'others_percent', 1)])} |"


def targets(samples):
    """Yields the targets: text, measured median, and whether the target holds."""
    median = {
        (case, field): statistics.median(column(samples, ("tidegate", case), field))
        for case in ("saturate", "rate", "stall")
        if ("tidegate", case) in samples
        for field in ("rate", "error_p99_ms", "p90_ms", "p99_ms")
    }
    if rate := median.get(("saturate", "rate")):
        yield f"requests per second from one core ≥ {SATURATED_MIN:,}: {rate:.0f}", rate >= SATURATED_MIN
    if (error := median.get(("rate", "error_p99_ms"))) is not None:
        text = f"schedule error p99 at {RATE:,}/s < {ERROR_P99_MS_MAX} ms: {error:.3f} ms"
        yield text, error < ERROR_P99_MS_MAX
    for field, truth in STALL_TRUTH_MS.items():
        if got := median.get(("stall", field)):
            text = f"stall, {field.removesuffix('_ms')} within {STALL_SHARE_MAX:.0%} of {truth} ms: {got:.0f} ms"
            yield text, abs(got / truth - 1) <= STALL_SHARE_MAX


def setting(peers, tools, options, spent):
    yield f"Machine: {machine_line()}. Over the whole run the hypervisor stole {spent.steal_percent:.1f} % of the CPU time."
    yield ""
    yield f"- nginx: {version_of([peers.programs['nginx'], '-v'])}"
    yield f"- wrk: {version_of(['wrk', '-v'])}"
    oha = next((tool for tool in tools if tool.name == "oha"), None)
    missing = "not found: `cargo install oha --root target/bench-oha`"
    yield f"- oha: {version_of([oha.program, '--version']) if oha else missing}"
    yield ""
    yield (
        f"{options.rounds} interleaved rounds of {options.seconds} s in shuffled order (seed {options.seed}). The tool has one "
        f"core, nginx has the other and answers 3 bytes. {CONNECTIONS} connections (HTTP/2: one, with {STREAMS} streams), "
        f"{STALL_CONNECTIONS:,} for the stall. Latencies of a fixed rate count from when a request was due. Medians, "
        "with the interquartile range."
    )
    if options.rounds < ROUNDS_MIN:
        yield ""
        yield f"Fewer than {ROUNDS_MIN} rounds: too few for a result."


def against_wrk(samples):
    if ("wrk", "saturate") not in samples:
        return
    for field, text in (("rate", "requests per second"), ("cpu_us", "CPU per request")):
        ours, theirs = (column(samples, (name, "saturate"), field) for name in ("tidegate", "wrk"))
        ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
        yield f"- {text}, tidegate / wrk: {spread(ratios, 2)}"


def report(peers, tools, options, samples, spent):
    judged = list(targets(samples))
    verdicts = [f"- {text}: {'holds' if holds else 'MISSED'}" for text, holds in judged]
    parts = [*setting(peers, tools, options, spent), "", *table(samples), "", *verdicts, *against_wrk(samples)]
    text = "\n".join(parts)
    print(text)
    if options.write:
        write_section(options.write, MARKERS, text)
    return 1 if any(not holds for _, holds in judged) and not options.report_only else 0


# === the command ===


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cases = ["saturate", "rate", "stall"]
    parser.add_argument("--rounds", type=int, default=ROUNDS_MIN)
    parser.add_argument("--seconds", type=int, default=3, help="length of a measured round; of a stall it is fixed")
    parser.add_argument("--warm-up", type=int, default=1, metavar="SECONDS")
    parser.add_argument("--seed", type=int, default=1, help="of the order within each round")
    parser.add_argument("--cases", type=lambda text: text.split(","), default=cases, metavar="CASE,…", help=", ".join(cases))
    parser.add_argument("--report-only", action="store_true", help="exit with 0 even if a target is missed")
    parser.add_argument("--write", type=Path, metavar="FILE", help=f"replace the text between {' and '.join(MARKERS)}")
    default = tidegate_binary().parent / "examples" / "generator_speed"
    parser.add_argument("--generator", type=Path, default=default, help="the example to measure")
    smoke = tidegate_binary("debug").parent / "examples" / "generator_speed"
    return parse(parser, rounds=1, seconds=1, cases=["saturate", "rate"], generator=smoke)


def check_machine(peers, options):
    require("wrk")
    if peers.missing([]):
        raise BenchError("nginx is missing: it comes with scripts/bench-deps")
    if not options.generator.exists():
        raise BenchError(
            "the generator is missing: `cargo build --release --locked -p tidegate-testkit --example generator_speed`"
        )
    if not {PROXY_CORE, LOAD_CORE} <= os.sched_getaffinity(0):
        raise BenchError("two cores are needed: one for the server, one for the load")


def raise_descriptor_limit():
    """Raises the limit that the tools inherit; nginx has its own in its configuration, which suffices for the stall."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65_536) if hard > 0 else 65_536, hard))


def run(options, directory):
    peers = Peers(directory, options.generator)
    check_machine(peers, options)
    if options.write:
        split_at_markers(options.write, MARKERS)
    raise_descriptor_limit()
    tools = [Ours(options.generator), Ours(options.generator, http2=True), Wrk()]
    if oha := find_oha():
        tools.append(Oha(oha))
    start = MachineTimes.now()
    port, server = peers.upstream(PROXY_CORE)
    with contextlib.ExitStack() as stack:
        stack.callback(server.stop)
        [http2_port] = free_ports(1)
        http2_server = peers.nginx("http2", NGINX_HTTP2.format(port=http2_port), PROXY_CORE)
        stack.callback(http2_server.stop)
        wait_until(lambda: listens(http2_port), http2_server, "the listener for HTTP/2")
        servers = {"http1": (port, server), "http2": (http2_port, http2_server)}
        samples = run_rounds(tools, servers, options)
    return report(peers, tools, options, samples, MachineTimes.now().since(start))


def main():
    exit_on_sigterm()
    options = parse_options()
    try:
        with alone(options), tempfile.TemporaryDirectory(prefix="tidegate-bench-") as directory:
            return run(options, directory)
    except BenchError as error:
        print(f"generator: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
