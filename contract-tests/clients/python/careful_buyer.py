"""Buys with examples/python/buyer.py through a proxy that cuts, delays and repeats: the wallet spends answers times price."""

import json
import os
import random
import sys
import tempfile
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import HTTPError

sys.dont_write_bytecode = True
sys.path.insert(0, os.environ["EXAMPLES"])
from buyer import Buyer, Kept, Unpaid  # noqa: E402
from check import TEXT, URL  # noqa: E402
from wallet import RPC_URL  # noqa: E402

CALLS = int(os.environ.get("CALLS", "12"))
PRICE = 10_000
ATTEMPT = 5
chance = random.Random(39)
payments = []


def harm() -> str:
    return chance.choices(["none", "cut before", "cut after", "repeat", "late", "503"], [60, 10, 10, 8, 2, 10])[0]


class Proxy(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_args) -> None:
        pass

    def forward(self, body: bytes):
        names = ("content-type", "payment-signature")
        headers = {name: self.headers[name] for name in names if self.headers[name]}
        asked = urllib.request.Request(URL + self.path, body or None, headers, method=self.command)
        try:
            with urllib.request.urlopen(asked, timeout=60) as answer:
                return answer.status, answer.headers, answer.read()
        except HTTPError as answer:
            return answer.code, answer.headers, answer.read()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"] or 0))
        if self.headers["payment-signature"]:
            payments.append(self.headers["payment-signature"])
        kind = harm()
        self.close_connection = True
        if kind == "cut before":
            return
        if kind == "503":
            return self.reply(503, {}, b"busy")
        if kind == "repeat":
            self.forward(body)
        status, headers, answer = self.forward(body)
        if kind == "late":
            time.sleep(ATTEMPT + 1)
        self.reply(status, headers, answer, cut=kind == "cut after")

    def reply(self, status: int, headers, body: bytes, cut=False) -> None:
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() in ("content-type", "payment-required", "payment-response", "location", "retry-after"):
                self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if cut else body)


def balance_of(address: str) -> int:
    params = [address, {"programId": "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA"}, {"encoding": "jsonParsed", "commitment": "confirmed"}]
    asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "getTokenAccountsByOwner", "params": params}).encode()
    request = urllib.request.Request(RPC_URL, asked, {"content-type": "application/json"})
    accounts = json.load(urllib.request.urlopen(request, timeout=10))["result"]["value"]
    return sum(int(each["account"]["data"]["parsed"]["info"]["tokenAmount"]["amount"]) for each in accounts)


proxy = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
proxy.daemon_threads = True
proxy.handle_error = lambda *_: None  # a buyer that hung up
threading.Thread(target=proxy.serve_forever, daemon=True).start()
shop = f"http://127.0.0.1:{proxy.server_port}"
with tempfile.TemporaryDirectory() as folder:
    options = {"rpc_url": RPC_URL, "folder": folder, "budget": "5", "attempt": ATTEMPT}
    buyer = Buyer(os.environ["KEYPAIR"], **options)
    before = balance_of(buyer.signer.address)
    for number in range(CALLS):
        call = json.dumps({"text": f"{TEXT} Edition {number} for Python."}).encode()
        for _attempt in range(20):
            try:
                # A restarted program continues with the payments of its previous run.
                status, _headers, body = Buyer(os.environ["KEYPAIR"], **options, timeout=8).fetch(f"{shop}/v1/summarize", call)
            except (Unpaid, Kept):
                continue
            if status == 200:
                break
        assert status == 200 and json.loads(body)["summary"], (status, body)
    spent = before - balance_of(buyer.signer.address)
    events = [line["event"] for line in buyer.statement()]
    assert spent == CALLS * PRICE, f"{spent} for {CALLS} calls"
    assert events.count("signed") == events.count("answered") == CALLS, events
    assert len(set(payments)) == CALLS, f"{len(set(payments))} payments for {CALLS} calls"
    poor = Buyer(os.environ["KEYPAIR"], rpc_url=RPC_URL, folder=f"{folder}/poor", max_price="0.009")
    try:
        poor.fetch(f"{URL}/v1/summarize", call)
        raise AssertionError("paid more than the limit")
    except Unpaid:
        assert poor.statement() == []
    print(f"{CALLS} answers, {len(payments)} paid requests, spent {spent}")
