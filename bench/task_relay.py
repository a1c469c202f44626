"""Counts messages between a manager and its executors: one relay in front of each executor, in a separate run,
because relaying takes time."""

import asyncio
import contextlib
import re
import threading

REQUEST = re.compile(rb"(?:GET|POST|DELETE|HEAD) (/\w+)[^ \r\n]* HTTP/1\.1\r\n")
REPLY = re.compile(rb"HTTP/1\.1 \d{3} ")


class Relays:
    """Relays in their own thread. Messages are small and sequential on a connection, so each arrives as a whole."""

    def __init__(self):
        self.requests = {}
        self.replies = 0
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)

    def before(self, target):
        """Returns the port of a new relay to this port."""
        return asyncio.run_coroutine_threadsafe(self.listen(target), self.loop).result(10)

    async def listen(self, target):
        server = await asyncio.start_server(lambda *connection: self.relay(target, *connection), "127.0.0.1", 0)
        return server.sockets[0].getsockname()[1]

    def messages(self):
        """Number of requests and replies."""
        return sum(self.requests.values()) + self.replies

    async def relay(self, target, reader, writer):
        with contextlib.suppress(OSError):
            there, back = await asyncio.open_connection("127.0.0.1", target)
            await asyncio.gather(self.pump(reader, back, self.asked), self.pump(there, writer, self.replied))

    async def pump(self, reader, writer, count):
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                count(data)
                writer.write(data)
                await writer.drain()
        writer.close()

    def asked(self, data):
        for path in REQUEST.findall(data):
            self.requests[path.decode()] = self.requests.get(path.decode(), 0) + 1

    def replied(self, data):
        self.replies += len(REPLY.findall(data))
