"""A real SMTP server (Debian's python3-aiosmtpd) for the tests of mail.

usage: smtp_peer.py FOLDER CERTIFICATE KEY [PORT [utf8]]

Prints the ports of five listeners on 127.0.0.1, in one line, and ends when its standard input does:
  plain     no TLS, no AUTH, no SMTPUTF8 but with "utf8"; on PORT when it is given
  clear     AUTH without TLS, and no STARTTLS
  starttls  STARTTLS, and AUTH after it is required
  smtps     TLS from the start, AUTH is required
  utf8      as plain, with SMTPUTF8
The user is "shop", the password "secret".  An accepted message is FOLDER/<n>.eml, n from 1;
FOLDER/log gets a line for each login and each message.  The recipient's local part chooses the
answer: rcpt<code> is refused at RCPT, data<code> after the message, once<code> only at the very
first RCPT; limit is refused at RCPT as Google does when a day's limit is reached, and limited as
Microsoft does.
"""
import asyncio
import os
import re
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult

folder, certificate, key = sys.argv[1:4]
port = int(sys.argv[4]) if len(sys.argv) > 4 else 0
refused_once = set()
LIMITS = {"limit": "550 5.4.5 Daily user sending limit exceeded.",
          "limited": "550 5.1.90 Your message can't be sent because you've reached your daily limit"}


def log(*words):
    with open(os.path.join(folder, "log"), "a", encoding="utf-8") as file:
        file.write(" ".join(str(word) for word in words) + "\n")


def chosen(stage, address):
    match = re.match(stage + r"(\d{3})@", address)
    return match and match.group(1) + " 1.2.3 the test chose this answer for " + stage


class Handler:
    messages = 0

    def __init__(self, name):
        self.name = name

    async def handle_RCPT(self, server, session, envelope, address, options):
        answer = chosen("rcpt", address) or LIMITS.get(address.split("@")[0])
        if not answer and address not in refused_once:
            refused_once.add(address)
            answer = chosen("once", address)
        if not answer:
            envelope.rcpt_tos.append(address)
        return answer or "250 OK"

    async def handle_DATA(self, server, session, envelope):
        answer = chosen("data", envelope.rcpt_tos[0])
        if answer:
            return answer
        Handler.messages += 1
        path = os.path.join(folder, f"{Handler.messages}.eml")
        with open(path + ".new", "wb") as file:
            file.write(envelope.content)
        os.rename(path + ".new", path)
        log(self.name, "mail", session.peer[1], envelope.mail_from, *envelope.rcpt_tos,
            *(option for option in envelope.mail_options if option == "SMTPUTF8"))
        return "250 OK"

    def login(self, server, session, envelope, mechanism, data):
        log(self.name, "login", session.peer[1], data.login.decode())
        good = data.login == b"shop" and data.password == b"secret"
        return AuthResult(success=good, handled=False)


def listener(name, tls=None, at=0, **options):
    handler = Handler(name)

    def make():
        return SMTP(handler, hostname="peer.test", authenticator=handler.login, **options)

    return asyncio.get_running_loop().create_server(make, "127.0.0.1", at, ssl=tls)


async def main():
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    servers = [
        await listener("plain", at=port, auth_exclude_mechanism=["LOGIN", "PLAIN"],
                       enable_SMTPUTF8="utf8" in sys.argv[5:]),
        await listener("clear", auth_require_tls=False),
        await listener("starttls", tls_context=tls, require_starttls=True, auth_required=True),
        await listener("smtps", tls=tls, auth_required=True, auth_require_tls=False),
        await listener("utf8", enable_SMTPUTF8=True),
    ]
    print(*(server.sockets[0].getsockname()[1] for server in servers), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    os._exit(0)


asyncio.run(main())
