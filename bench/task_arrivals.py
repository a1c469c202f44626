"""Open-loop task arrivals by the clock over persistent connections."""

import asyncio
import json
import random
import time

from harness import BenchError

CONNECTIONS = 64


def poisson(per_s, seconds, seed):
    """Returns Poisson arrival times from 0, in seconds."""
    chance, at, due = random.Random(seed), 0.0, []
    while (at := at + chance.expovariate(per_s)) < seconds:
        due.append(at)
    return due


def at_once(count):
    return [0.0] * count


def submit_at(port, due_s, name):
    """Submits a task at each of these times. Returns the 99th percentile of the delay, in ms."""
    return asyncio.run(submit_all(port, due_s, name))


async def submit_all(port, due_s, name):
    idle, late_ms = asyncio.LifoQueue(), []
    count = min(CONNECTIONS, max(len(due_s), 1))
    connections = [await asyncio.open_connection("127.0.0.1", port) for _ in range(count)]
    for each in connections:
        idle.put_nowait(each)
    start = time.monotonic()
    try:
        async with asyncio.TaskGroup() as group:
            for number, due in enumerate(due_s):
                if (pause := start + due - time.monotonic()) > 0:
                    await asyncio.sleep(pause)
                connection = await idle.get()
                late_ms.append((time.monotonic() - start - due) * 1e3)
                group.create_task(submit(idle, connection, f"{name}-{number}"))
    except* (OSError, BenchError, asyncio.IncompleteReadError) as failed:
        raise BenchError(f"a submission failed: {failed.exceptions[0]}") from None
    finally:
        for _, writer in connections:
            writer.close()
    return sorted(late_ms)[int(len(late_ms) * 0.99)] if late_ms else 0.0


async def submit(idle, connection, code):
    reader, writer = connection
    body = json.dumps({"runtime": "bench", "code": code}).encode()
    head = f"POST /v1/tasks HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = int(head.partition("content-length:")[2].partition("\r\n")[0])
    answer = await reader.readexactly(length)
    if not head.startswith("http/1.1 201"):
        raise BenchError(f"{head.splitlines()[0]}: {answer[:200]!r}")
    idle.put_nowait(connection)
