#!/usr/bin/env python3
"""Runs a gateway at 10× overload and measures its memory.

Run by `make bench`, or alone: `bench/memory.py --seconds 60`. Memory must not grow with offered load: after the
warm-up the resident size must stay within 20 MB. Exit code: 0 the target holds, 1 it does not, 2 no figures.
"""

import argparse
import asyncio
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

sys.dont_write_bytecode = True  # The run leaves no files behind, not even bytecode caches.

from harness import (
    BenchError,
    Process,
    alone,
    exit_on_sigterm,
    free_ports,
    machine_line,
    parse,
    require,
    status_of,
    tidegate_binary,
    wait_until,
    wrk_argv,
    wrk_result,
)

GROWTH_MIB_MAX = 20
REFUSED_SHARE_MIN = 0.9
CONNECTIONS = 256
# 20 slots of 50 ms serve 400 requests per second; 256 connections offer many times that.
LIMITS = {"global": 20, "high": 10, "normal": 6, "low": 4}
SERVICE_S = 0.05
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok\n"


@dataclass
class Watch:
    """Resident sizes in MiB, one per second."""

    warm_up: list
    load: list

    @property
    def start(self):
        return self.warm_up[-1]

    @property
    def growth(self):
        return max(self.load) - self.start


# === the slow upstream ===


async def answer_slowly(reader, writer):
    try:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            await asyncio.sleep(SERVICE_S)
            writer.write(ANSWER)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def start_slow_upstream():
    [port] = free_ports(1)

    async def serve():
        server = await asyncio.start_server(answer_slowly, "127.0.0.1", port)
        await server.serve_forever()

    threading.Thread(target=lambda: asyncio.run(serve()), daemon=True).start()
    return port


# === the run ===


def start_tidegate(binary, upstream_port, directory):
    port, admin_port = free_ports(2)
    limits = [arg for name, limit in LIMITS.items() for arg in (f"--{name}-limit", limit)]
    argv = [
        *(binary, "up", "--upstream", f"http://127.0.0.1:{upstream_port}", "--log-level", "warn"),
        *("--tasks", "false", "--ingest", "false"),
        *("--listen", f"127.0.0.1:{port}", "--admin-listen", f"127.0.0.1:{admin_port}", *limits),
    ]
    process = Process(argv, Path(directory) / "tidegate.log")
    try:
        wait_until(lambda: status_of(port) == 200, process, "tidegate's first answer")
    except BenchError:
        process.stop()
        raise
    return port, process


def sample(process, seconds):
    """Samples at whole seconds from now, so that the duration of a sample does not accumulate."""
    start, sizes = time.monotonic(), []
    for second in range(1, seconds + 1):
        time.sleep(max(0, start + second - time.monotonic()))
        sizes.append(process.rss_kib() / 1024)
    return sizes


def watch_under_load(port, process, options):
    seconds = options.warm_up + options.seconds
    argv = [str(arg) for arg in wrk_argv(port, "priorities.lua", seconds + 1, CONNECTIONS)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as wrk:
        try:
            watch = Watch(sample(process, options.warm_up), sample(process, options.seconds))
            output, _ = wrk.communicate(timeout=30)
        finally:
            wrk.kill()
    return watch, wrk_result(output)


def check_overload(result):
    share = result["status_errors"] / max(result["requests"], 1)
    if share < REFUSED_SHARE_MIN or result["socket_errors"]:
        raise BenchError(f"this was no overload: at least 90 % should be refused, wrk saw {result}")
    return share


def report(watch, result, options):
    rate = result["requests"] / (result["duration_us"] / 1e6)
    holds = watch.growth <= GROWTH_MIB_MAX
    print(f"Machine: {machine_line()}")
    print(f"{rate:.0f} requests/s over {CONNECTIONS} connections, {check_overload(result):.1%} refused")
    print(f"resident size: {watch.start:.1f} MiB after the warm-up, {max(watch.load):.1f} at most, {watch.load[-1]:.1f} at the end")
    print(f"- growth ≤ {GROWTH_MIB_MAX} MiB: {watch.growth:.1f} MiB: {'holds' if holds else 'MISSED'}")
    return 0 if holds or options.smoke else 1


def run(options, directory):
    require("wrk")
    if not options.tidegate.exists():
        raise BenchError(f"{options.tidegate} is missing: `cargo build --release --locked` makes it")
    port, process = start_tidegate(options.tidegate, start_slow_upstream(), directory)
    with process:
        watch, result = watch_under_load(port, process, options)
    return report(watch, result, options)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--warm-up", type=int, default=10, metavar="SECONDS")
    parser.add_argument("--tidegate", type=Path, default=tidegate_binary(), help="the binary to measure")
    return parse(parser, seconds=2, warm_up=1)


def main():
    exit_on_sigterm()
    options = parse_options()
    try:
        with alone(options), tempfile.TemporaryDirectory(prefix="tidegate-bench-") as directory:
            return run(options, directory)
    except BenchError as error:
        print(f"memory: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
