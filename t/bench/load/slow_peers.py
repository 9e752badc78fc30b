"""The slow peers of a hostile shop: a source of 1 KB a second, and a mail server that takes its time.

usage: slow_peers.py

Prints the ports of both on 127.0.0.1, in one line, and ends when its standard input does.  The source
answers each GET with 100 MB.  The mail server takes everything; a recipient at slow.example waits for a
minute, the others for nothing.
"""
import asyncio
import sys

from aiosmtpd.smtp import SMTP


class Handler:
    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.endswith("@slow.example"):
            await asyncio.sleep(60)
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        return "250 OK"


async def send_slowly(reader, writer):
    try:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 104857600\r\nContent-Type: application/zip\r\n\r\n")
        while True:
            writer.write(b"x" * 1024)
            await writer.drain()
            await asyncio.sleep(1)
    except (ConnectionError, asyncio.IncompleteReadError):
        writer.close()


async def main():
    loop = asyncio.get_running_loop()
    source = await asyncio.start_server(send_slowly, "127.0.0.1", 0)
    mail = await loop.create_server(lambda: SMTP(Handler(), hostname="slow.test"), "127.0.0.1", 0)
    print(source.sockets[0].getsockname()[1], mail.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


asyncio.run(main())
