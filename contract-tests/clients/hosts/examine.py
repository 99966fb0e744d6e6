"""
Lets a library that agents are built on buy everything, directly and through `coinslot mcp`. There is no model: what is examined is the
text that the library hands to one. examine.js does the same in JavaScript.
"""

import asyncio
import json
import os
import re
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from x402 import parse_payment_required, x402Client
from x402.mechanisms.svm import KeypairSigner
from x402.mechanisms.svm.exact.register import register_exact_svm_client

URL = os.environ["COINSLOT_URL"]
RPC_URL = os.environ["RPC_URL"]
KEYPAIR = os.environ["KEYPAIR"]
# The wallet's budget, in USDC.
BUDGET = 5
# The size limit of one text for a model, in bytes.
MAX_BYTES = 4096
# A word that the answer of each operation contains.
ANSWERS = {
    "summarize": "summary",
    "solTokenBrief": "brief",
    "solMintInfo": "decimals",
    "brandFeedback": "responses",
    "textToSpeech": "audio/wav",
}

signer = KeypairSigner.from_bytes(bytes(json.loads(Path(KEYPAIR).read_text())))
wallet = register_exact_svm_client(x402Client(), signer, rpc_url=RPC_URL)
operations = [path.get("post", {}) for path in json.loads(Path("openapi.json").read_text())["paths"].values()]
EXAMPLES = {
    post["operationId"]: post["requestBody"]["content"]["application/json"]["example"]
    for post in operations
    if "x-price" in post
}


@dataclass
class Host:
    """An MCP server as a host uses it: names of tools, and calls that return the texts that a model would get."""

    tools: list[str]
    call: Callable[[str, dict, dict | None], Awaitable[list[str]]]
    longest: int = field(default=0, init=False)

    async def read(self, name: str, args: dict, payment: dict | None = None) -> str:
        texts = await self.call(name, args, payment)
        for text in texts:
            size = len(text.encode())
            self.longest = max(self.longest, size)
            assert size <= MAX_BYTES, f"{name} hands {size} bytes to a model: {text[:200]}"
        return "\n".join(texts)


@dataclass
class Server:
    """The shop's URL, or the wallet's command."""

    url: str | None = None
    command: list[str] = field(default_factory=list)


Open = Callable[[Server], AbstractAsyncContextManager[Host]]


async def seen(host: Host, *more: str) -> None:
    for name in (*ANSWERS, "listVoices", "pick_up", *more):
        assert name in host.tools, f"{name} is not among {host.tools}"
    assert "default" in await host.read("listVoices", {})


def assert_speech(content: bytes) -> None:
    assert content[:4] == b"RIFF", content[:20]


async def buy_directly(host: Host, name: str, example: dict) -> int:
    """Returns the price."""
    unpaid = await host.read(name, example)
    assert re.search(rf"{name} costs [\d.]+ USDC and was not paid", unpaid), unpaid
    required = json.loads(re.search(r"\{.*\}", unpaid)[0])
    payment = await wallet.create_payment_payload(parse_payment_required(required))
    text = await host.read(name, example, payment.model_dump(by_alias=True, mode="json"))
    assert ANSWERS[name] in text, text
    if name == "textToSpeech":
        assert_speech(httpx.get(re.search(r'https?:[^\s"\\]+', text)[0]).content)
    return int(required["accepts"][0]["amount"])


async def buy_through_wallet(host: Host, name: str, example: dict) -> None:
    text = await host.read(name, example)
    assert ANSWERS[name] in text, text
    assert re.search(r"Paid [\d.]+ USDC", text), text
    if name == "textToSpeech":
        assert_speech(Path(re.search(r"in the file (\S+)", text)[1]).read_bytes())


async def examined(open_host: Open) -> None:
    assert len(EXAMPLES) == 5
    program = f"{os.environ['root']}/src/cli/coinslot.js"
    limits = ["--max-price", "0.60", "--budget", str(BUDGET)]
    with tempfile.TemporaryDirectory() as folder:
        places = ["--url", URL, "--keypair", KEYPAIR, "--rpc", RPC_URL, "--state", folder]
        wallet_command = ["node", program, "mcp", *places, *limits]
        async with (
            open_host(Server(url=f"{URL}/mcp")) as direct,
            open_host(Server(command=wallet_command)) as through,
        ):
            await seen(direct)
            await seen(through, "wallet_statement")
            # Concurrently, as an agent does with independent calls.
            directly = [buy_directly(direct, *each) for each in EXAMPLES.items()]
            by_wallet = [buy_through_wallet(through, *each) for each in EXAMPLES.items()]
            due = sum((await asyncio.gather(*directly, *by_wallet))[: len(directly)])
            left = re.search(r"leftToday\W+([\d.]+)", await through.read("wallet_statement", {}))[1]
            assert round(float(left) * 1e6) == BUDGET * 10**6 - due, "one payment for each answer"
    longest = max(direct.longest, through.longest)
    print(f"the longest text has {longest} bytes")


def examine(open_host: Open) -> None:
    asyncio.run(examined(open_host))
