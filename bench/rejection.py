#!/usr/bin/env python3
"""Measures rejections: a gateway whose upstreams are all busy, compared with an nginx that refuses everything.

Run by `make bench`, or alone: `bench/rejection.py --rounds 12 --seconds 2`. Rounds are interleaved and shuffled. The cost of a
rejection must not depend on the length of the prompt, so short, long and very long prompts are sent.
Exit code: 0 all targets are met, 1 a target is missed, 2 the run produced no figures.
"""

import argparse
import contextlib
import http.client
import os
import random
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.dont_write_bytecode = True  # The run leaves no files behind, not even bytecode caches.

from harness import (
    LOAD_CORE,
    PROXY_CORE,
    REPOSITORY,
    BenchError,
    MachineTimes,
    Process,
    alone,
    exit_on_sigterm,
    free_ports,
    listens,
    machine_line,
    parse,
    require,
    run_wrk,
    split_at_markers,
    spread,
    tidegate_binary,
    wait_until,
    write_section,
)
from peers import Candidate, Peers, RefusingCandidate

CONNECTIONS = 64
UPSTREAMS = 2
# The upstreams report 0.9, far above this threshold.
THRESHOLD = 0.5
PATH = "/v1/chat/completions"
MARKERS = ("<!-- rejection:begin -->", "<!-- rejection:end -->")
# With fewer rounds the interquartile range is wider than the differences that the targets test.
ROUNDS_MIN = 12

NGINX = """
  client_max_body_size 16m;
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{
      default_type application/json;
      return 503 '{{"message":"All workers are busy, please retry later","type":"service_unavailable","code":503}}';
    }}
  }}
"""


@dataclass(frozen=True)
class Case:
    """Request of a case, and the published figures for rejecting it."""

    name: str
    args: tuple
    published_rate: float | None = None
    published_p50_ms: float | None = None


# Published: Dynamo 1.6.1 with all upstreams busy, 64 connections, on a machine like this one.
CASES = [
    Case("16 words", ("words", 16), 584, 94),
    Case("1,000 words", ("words", 1000), 136, 454),
    Case("1 MB", ("bytes", 1 << 20)),
]
RATE_FACTOR_MIN = 20
P50_SHARE_MAX = 0.1


@dataclass
class Sample:
    """Figures of one case with one candidate in one round."""

    rate: float
    cpu_us: float
    p50_ms: float
    p99_ms: float
    socket_errors: int


# === candidates ===


class Rejecting(Candidate):
    """Candidate that rejects everything without preparation."""

    status = 503

    def check_status(self):
        check_rejects(self)


class RejectingByLimits(RefusingCandidate):
    """Candidate that rejects while its only permit is in use."""

    def check_status(self):
        check_rejects(self)


def check_rejects(candidate):
    """Checks status and body, because another kind of rejection would be measured too."""
    status, text = rejection(candidate.port)
    if status != 503 or not any(word in text for word in ("busy", "limit")):
        raise BenchError(f"{candidate.name} should reject, and answered {status}: {text[:200]}")


def rejection(port):
    """Returns status and text of the response to one short prompt, or None without a response."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    body = '{"model":"bench","messages":[{"role":"user","content":"are you busy"}]}'
    try:
        connection.request("POST", PATH, body, {"content-type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace").lower()
    except (OSError, http.client.HTTPException) as error:
        return None, str(error)
    finally:
        connection.close()


def start_tidegate(peers, busy_by):
    if busy_by == "limits":
        candidate = peers.start_refusing()
        return RejectingByLimits("tidegate", candidate.port, candidate.process, candidate.stack)
    with contextlib.ExitStack() as stack:
        ports = [start_upstream(peers, stack) for _ in range(UPSTREAMS)]
        [port] = free_ports(1)
        more = [arg for upstream in ports[1:] for arg in ("--upstream", f"http://127.0.0.1:{upstream}")]
        # Without a queue, so that every request is rejected at once.
        flags = [*more, "--active-decode-blocks-threshold", THRESHOLD, "--queue-size", 0]
        process = peers.start_tidegate(port, ports[0], "tidegate", flags)
        stack.callback(process.stop)
        wait_until(lambda: rejection(port)[0] == 503, process, "the first rejection")
        return Rejecting("tidegate", port, process, stack.pop_all())


def start_upstream(peers, stack):
    [port] = free_ports(1)
    argv = [sys.executable, REPOSITORY / "bench" / "busy_upstream.py", port]
    upstream = Process(argv, peers.directory / f"upstream-{port}.log", LOAD_CORE)
    stack.callback(upstream.stop)
    wait_until(lambda: listens(port), upstream, "an upstream's listener")
    return port


def start_nginx(peers):
    [port] = free_ports(1)
    process = peers.nginx("nginx", NGINX.format(port=port), PROXY_CORE)
    wait_until(lambda: rejection(port)[0] == 503, process, "nginx's first rejection")
    candidate = Rejecting("nginx", port, process)
    candidate.stack.callback(process.stop)
    return candidate


# === measuring ===


def measure(candidate, case, seconds):
    with candidate.ready():
        cpu = candidate.process.cpu_seconds()
        result = run_wrk(candidate.port, "chat.lua", seconds, CONNECTIONS, path=PATH, args=case.args)
        cpu = candidate.process.cpu_seconds() - cpu
    check_answers(candidate, case, result)
    return Sample(
        rate=result["requests"] / (result["duration_us"] / 1e6),
        cpu_us=cpu * 1e6 / result["requests"],
        p50_ms=result["p50_us"] / 1e3,
        p99_ms=result["p99_us"] / 1e3,
        socket_errors=result["socket_errors"],
    )


def check_answers(candidate, case, result):
    """Checks the responses. A connection with an unread body is closed, which wrk counts as an error while it writes."""
    may_close = case.args[0] == "bytes"
    all_rejected = result["requests"] and result["status_errors"] == result["requests"]
    if not all_rejected or (result["socket_errors"] and not may_close):
        raise BenchError(f"{candidate.name}, {case.name}: every answer should be a 503, wrk saw {result}")


def run_rounds(candidates, options):
    turns = [(candidate, case) for candidate in candidates for case in CASES]
    samples = {(candidate.name, case.name): [] for candidate, case in turns}
    for candidate, case in turns:
        measure(candidate, case, options.warm_up)
    shuffle = random.Random(options.seed).shuffle
    for number in range(1, options.rounds + 1):
        shuffle(turns)
        for candidate, case in turns:
            samples[candidate.name, case.name].append(measure(candidate, case, options.seconds))
        progress = "  ".join(f"{name} {case} {taken[-1].rate:.0f}" for (name, case), taken in samples.items())
        print(f"round {number}/{options.rounds}, rejections per second: {progress}", file=sys.stderr, flush=True)
    return samples


# === reporting ===


def column(samples, name, case, field):
    return [getattr(sample, field) for sample in samples[name, case]]


def table(samples):
    yield "| candidate | request | rejections/s | × published | p50 ms | × published | p99 ms | CPU µs each |"
    yield "|---|---|---|---|---|---|---|---|"
    for name in ("tidegate", "nginx"):
        for case in CASES:
            rates, p50s = column(samples, name, case.name, "rate"), column(samples, name, case.name, "p50_ms")
            cells = [
                *(name, case.name),
                *(spread(rates, 0), against(rates, case.published_rate, 1)),
                *(spread(p50s, 2), against(p50s, case.published_p50_ms, 4)),
                spread(column(samples, name, case.name, "p99_ms"), 2),
                spread(column(samples, name, case.name, "cpu_us"), 1),
            ]
            yield f"| {' | '.join(cells)} |"


def against(values, published, digits):
    return f"{statistics.median(values) / published:.{digits}f}" if published else "–"


def long_to_short(samples, name, field):
    """Returns the ratio of 1,000 words to 16 words, within a round."""
    short, long = (column(samples, name, case.name, field) for case in CASES[:2])
    return [a / b for a, b in zip(long, short, strict=True)]


def judge(samples):
    """Returns one line per target, and the number of missed targets."""
    lines, missed = [], 0
    for case in (case for case in CASES if case.published_rate):
        rate = statistics.median(column(samples, "tidegate", case.name, "rate")) / case.published_rate
        share = statistics.median(column(samples, "tidegate", case.name, "p50_ms")) / case.published_p50_ms
        for text, is_met in (
            (f"rate, {case.name}: {rate:.1f} × the published {case.published_rate}/s, ≥ {RATE_FACTOR_MIN}", rate >= RATE_FACTOR_MIN),
            (f"p50, {case.name}: {share:.4f} × the published {case.published_p50_ms} ms, ≤ {P50_SHARE_MAX}", share <= P50_SHARE_MAX),
        ):
            missed += not is_met
            lines.append(f"- {text}: {'MET' if is_met else 'MISSED'}")
    for name in ("tidegate", "nginx"):
        rate, cpu = (spread(long_to_short(samples, name, field), 2) for field in ("rate", "cpu_us"))
        lines.append(f"- 1,000 words / 16 words, {name}: rate {rate}, CPU each {cpu}")
    return lines, missed


def setting(peers, options, spent):
    versions = peers.versions()
    busy = {
        "thresholds": f"{UPSTREAMS} upstreams that report a KV-cache usage of 90 % with a threshold of {THRESHOLD:.0%}",
        "limits": "one place, which is held (`--busy-by limits`: the admission's refusal, not the router's)",
    }[options.busy_by]
    yield f"Machine: {machine_line()}. Over the whole run the hypervisor stole {spent.steal_percent:.1f} % of the CPU time."
    yield ""
    yield from (f"- {name}: {versions[name]}" for name in ("tidegate", "nginx", "wrk"))
    yield ""
    yield (
        f"{options.rounds} interleaved rounds of {options.seconds} s in shuffled order (seed {options.seed}), {CONNECTIONS} "
        f"connections. Tidegate has {busy}; nginx responds 503 to everything. Each has one core, wrk has the other. Medians, "
        "with the interquartile range. The published figures are from another day and machine: only their order of"
        " magnitude counts."
    )
    if options.rounds < ROUNDS_MIN:
        yield ""
        yield f"Fewer than {ROUNDS_MIN} rounds: too few for a result."


def closed(samples):
    """Reports connections that ended before wrk read the response, because long bodies are not read."""
    for name in ("tidegate", "nginx"):
        errors = sum(column(samples, name, CASES[-1].name, "socket_errors"))
        yield f"- {name}, {CASES[-1].name}: {errors} connections ended before wrk had read the answer"


def report(peers, options, samples, spent):
    verdicts, missed = judge(samples)
    parts = [*setting(peers, options, spent), "", *table(samples), "", *verdicts, *closed(samples)]
    text = "\n".join(parts)
    print(text)
    if options.write:
        write_section(options.write, MARKERS, text)
    return 1 if missed and not options.report_only else 0


# === the command ===


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS_MIN)
    parser.add_argument("--seconds", type=int, default=2, help="length of a measured round")
    parser.add_argument("--warm-up", type=int, default=1, metavar="SECONDS")
    parser.add_argument("--seed", type=int, default=1, help="of the order within each round")
    parser.add_argument("--busy-by", choices=["thresholds", "limits"], default="thresholds", help="cause of the rejections")
    parser.add_argument("--report-only", action="store_true", help="exit with 0 even if a target is missed")
    parser.add_argument("--write", type=Path, metavar="FILE", help=f"replace the text between {' and '.join(MARKERS)}")
    parser.add_argument("--tidegate", type=Path, default=tidegate_binary(), help="the binary to measure")
    return parse(parser, rounds=1, seconds=1)


def check_machine(peers):
    require("wrk")
    if missing := peers.missing(["tidegate", "nginx"]):
        raise BenchError(
            f"missing: {', '.join(missing)}. nginx comes with scripts/bench-deps, tidegate with "
            "`cargo build --release --locked`."
        )
    if not {PROXY_CORE, LOAD_CORE} <= os.sched_getaffinity(0):
        raise BenchError("two cores are needed: one for the gateway, one for the load")


def run(options, directory):
    peers = Peers(directory, options.tidegate)
    check_machine(peers)
    if options.write:
        split_at_markers(options.write, MARKERS)
    start = MachineTimes.now()
    with contextlib.ExitStack() as stack:
        candidates = []
        for starter in (lambda: start_tidegate(peers, options.busy_by), lambda: start_nginx(peers)):
            candidates.append(starter())
            stack.callback(candidates[-1].close)
        samples = run_rounds(candidates, options)
    return report(peers, options, samples, MachineTimes.now().since(start))


def main():
    exit_on_sigterm()
    options = parse_options()
    try:
        with alone(options), tempfile.TemporaryDirectory(prefix="tidegate-bench-") as directory:
            return run(options, directory)
    except BenchError as error:
        print(f"rejection: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
