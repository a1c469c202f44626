#!/usr/bin/env python3
"""Upstream that reports itself busy: `bench/busy_upstream.py PORT`. It reports a KV-cache usage of 90 % in vLLM's format,
and responds 200 to any other request at once, so that a request that was not rejected is detected.
"""

import asyncio
import contextlib
import sys

MODEL = "bench"
METRICS = f"""\
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{{engine="0",model_name="{MODEL}"}} 32.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{{engine="0",model_name="{MODEL}"}} 8.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{{engine="0",model_name="{MODEL}"}} 0.9
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{{block_size="16",engine="0",num_gpu_blocks="26800"}} 1.0
"""
MODELS = f'{{"object":"list","data":[{{"id":"{MODEL}","object":"model","owned_by":"vllm"}}]}}'
PAGES = {"/metrics": ("text/plain; version=0.0.4", METRICS), "/v1/models": ("application/json", MODELS)}


def answer(path):
    kind, text = PAGES.get(path, ("application/json", '{"object":"chat.completion"}'))
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {len(text)}\r\n\r\n"
    return (head + text).encode()


async def serve(reader, writer):
    with contextlib.suppress(asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            _, _, length = head.partition("content-length:")
            await reader.readexactly(int(length.split("\r\n")[0] or 0) if length else 0)
            writer.write(answer(head.split(" ")[1].partition("?")[0]))
            await writer.drain()
    writer.close()


async def main(port):
    server = await asyncio.start_server(serve, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
