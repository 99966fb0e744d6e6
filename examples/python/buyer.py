"""Buys calls over HTTP, and pays for each of them once (docs/how-to/buy.md). Needs the official client: pip install 'x402[svm]'.

    buyer = Buyer("payer.json", rpc_url="https://…", folder="wallet", max_price="0.05", budget="1.00")
    status, headers, body = buyer.fetch("https://shop.example/v1/summarize", json.dumps({"text": "…"}).encode())

A payment is stored on disk before it is sent. After a 503, a time-out or a lost connection, the same payment is sent again, also if the
program was restarted in between. No other payment is signed for the call until it is answered.
"""

import fcntl
import hashlib
import json
import os
import time
import urllib.error
import urllib.request
import uuid
from base64 import b64decode
from contextlib import contextmanager
from decimal import Decimal
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from x402 import x402ClientSync
from x402.http.utils import encode_payment_signature_header
from x402.mechanisms.svm import KeypairSigner
from x402.mechanisms.svm.exact.register import register_exact_svm_client
from x402.schemas import PaymentRequired

ATOMIC = 1_000_000
MAX_ANSWER = 64 << 20
MAX_WAIT = 10


class Unpaid(Exception):
    """Nothing was paid; the message says why."""


class Kept(Exception):
    """A payment was signed and has no answer yet. Repeating the same call continues with it. The payment counts as spent."""


class Buyer:
    def __init__(self, keypair: str, rpc_url: str, folder: str, max_price="0.05", budget="1.00", timeout=120, attempt=60):
        self.signer = KeypairSigner.from_bytes(bytes(json.loads(Path(keypair).read_text())))
        self.max_price, self.budget = (int(Decimal(amount) * ATOMIC) for amount in (max_price, budget))
        self.client = register_exact_svm_client(x402ClientSync(), self.signer, rpc_url=rpc_url)
        self.client.set_spend_controls({"max_amount_per_payment": f"${max_price}"})
        self.folder, self.timeout, self.attempt = Path(folder), timeout, attempt
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def fetch(self, url: str, body: bytes | None = None, method="POST", content_type="application/json"):
        """Returns status, headers and body of the answer, whether it was paid for or free."""
        deadline = time.monotonic() + self.timeout
        request = {"method": method, "url": url, "body": body, "type": content_type}
        name = hashlib.sha256(f"{method} {url}\n{content_type}\n".encode() + (body or b"")).hexdigest()
        payment = self._kept(name)
        if payment is None:
            try:
                answer = self._send(request)
            except (OSError, HTTPException) as lost:
                raise Unpaid(f"{url} is not responding ({lost}). Nothing was paid.") from None
            if answer[0] != 402:
                return answer
            payment = self._sign(name, url, answer)
        return self._pay(name, request, payment, deadline)

    def statement(self) -> list[dict]:
        """The signed payments and their outcomes, oldest first. Amounts are in atomic units of USDC."""
        file = self.folder / "statement.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def _pay(self, name: str, request: dict, payment: dict, deadline: float):
        why, wait = "no answer in time", 0.5
        while True:
            try:
                location = payment.pop("location", None)
                answer = self._send({"method": "GET", "url": location}) if location else None
                if answer is None or not 200 <= answer[0] < 300:
                    answer = self._send(request, payment["header"])
                status, headers, body = answer
                receipt = receipt_of(headers)
                if 200 <= status < 300:
                    self._close(name, payment, "answered", receipt.get("transaction"))
                    return answer
                said = body[:300].decode(errors="replace")
                if receipt.get("errorReason") == "refunded":
                    self._close(name, payment, "refunded")
                    raise Unpaid(f"The shop reports that it refunded the payment, which still counts as spent: {said}")
                if status != 503:
                    self._note(payment, "refused" if status == 402 else "failed", said)
                    raise Kept(f"{status}: {said} The payment still counts as spent. To give it up, remove {self._file(name)}.")
                why, wait = said, float(headers.get("retry-after") or wait)
                payment |= self._located(request["url"], headers)
                if "location" in payment:
                    self._write(name, payment)
            except (OSError, HTTPException) as lost:
                why = str(lost)
            if time.monotonic() + wait > deadline:
                raise Kept(f"No answer yet ({why}). Repeat the same call: it continues with this payment and does not pay twice.")
            time.sleep(wait)
            wait = min(wait * 2, MAX_WAIT)

    def _sign(self, name: str, url: str, answer) -> dict:
        required = PaymentRequired.model_validate_json(answer[2])
        try:
            payload = self.client.create_payment_payload(required)
        except Exception as refused:
            raise Unpaid(f"{url} can't be paid: {refused} Nothing was paid.") from None
        identified(payload)
        amount = int(payload.accepted.amount)
        with self._locked():
            known = self._kept(name)
            if known is not None:
                return known
            left = self.budget - self._spent_today()
            if amount > min(self.max_price, left):
                raise Unpaid(f"The price of {amount} is above the limit of {self.max_price}, or above what is left of today's budget ({left}); in atomic units of USDC. Nothing was paid.")
            header = encode_payment_signature_header(payload)
            payment = {"shop": url, "amount": amount, "at": time.time(), "header": header}
            self._note(payment, "signed")
            self._write(name, payment)
        return payment

    def _send(self, request: dict, payment: str | None = None):
        headers = {"content-type": request["type"]} if request.get("body") else {}
        if payment:
            headers["PAYMENT-SIGNATURE"] = payment
        asked = urllib.request.Request(request["url"], request.get("body"), headers, method=request["method"])
        try:
            with urllib.request.urlopen(asked, timeout=self.attempt) as answer:
                return answer.status, lower(answer.headers), read(answer)
        except urllib.error.HTTPError as answer:
            with answer:
                return answer.code, lower(answer.headers), read(answer)

    def _located(self, url: str, headers: dict) -> dict:
        """Follows the shop's Location header only on the same host, so that a shop can't make this program call other machines."""
        location = urljoin(url, headers.get("location", url))
        own = urlsplit(location)[:2] == urlsplit(url)[:2] and location != url
        return {"location": location} if own else {}

    def _spent_today(self) -> int:
        today = time.strftime("%Y-%m-%d", time.gmtime())
        return sum(line["amount"] for line in self.statement() if line["event"] == "signed" and line["at"].startswith(today))

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def _kept(self, name: str) -> dict | None:
        file = self._file(name)
        return json.loads(file.read_text()) if file.exists() else None

    def _write(self, name: str, payment: dict) -> None:
        new = self.folder / f"{name}.new"
        with open(new, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(json.dumps(payment))
            file.flush()
            os.fsync(file.fileno())
        new.rename(self._file(name))
        self._flush_folder()

    def _close(self, name: str, payment: dict, event: str, transaction: str | None = None) -> None:
        self._note(payment, event, transaction)
        self._file(name).unlink(missing_ok=True)
        self._flush_folder()

    def _note(self, payment: dict, event: str, note: str | None = None) -> None:
        line = {"at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "event": event, "shop": payment["shop"], "amount": payment["amount"], "note": note}
        with open(self.folder / "statement.jsonl", "a", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _flush_folder(self) -> None:
        folder = os.open(self.folder, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)

    @contextmanager
    def _locked(self):
        """Programs that use the same folder share its budget, so only one at a time may sign."""
        with open(self.folder / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def identified(payload) -> None:
    """Gives the purchase a payment-identifier, if the shop supports it, so that the shop treats repetitions as the same sale."""
    extensions = payload.extensions or {}
    offered = extensions.get("payment-identifier")
    if isinstance(offered, dict):
        own = {**offered, "info": {**offered.get("info", {}), "id": f"buy-{uuid.uuid4()}"}}
        payload.extensions = {**extensions, "payment-identifier": own}


def lower(headers) -> dict:
    return {name.lower(): value for name, value in headers.items()}


def read(answer) -> bytes:
    body = answer.read(MAX_ANSWER + 1)
    if len(body) > MAX_ANSWER:
        raise OSError("the answer is larger than 64 MB")
    # If the connection is cut, http.client returns what it has received so far.
    if len(body) < int(answer.headers.get("content-length") or 0):
        raise OSError("the connection was cut in the answer")
    return body


def receipt_of(headers: dict) -> dict:
    return json.loads(b64decode(headers.get("payment-response", "e30=")))
