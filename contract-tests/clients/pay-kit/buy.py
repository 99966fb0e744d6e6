"""Buys every operation of a sandbox by one protocol, without an RPC server for anything. Its first lines are those of docs/how-to/clients.md."""

import json
import os
from pathlib import Path

from solana_pay_kit.client import PayKitClient
from solana_pay_kit.signer import LocalSigner

PROTOCOL = os.environ.get("PROTOCOL", "x402")  # or "mpp"
signer = LocalSigner.from_bytes(bytes(json.loads(Path(os.environ["KEYPAIR"]).read_text())))
builder = PayKitClient.builder().signer(signer).rpc(object()).network("devnet").accept([PROTOCOL])

import asyncio  # noqa: E402

URL = os.environ["COINSLOT_URL"]
RECEIPTS = {"x402": "PAYMENT-RESPONSE", "mpp": "Payment-Receipt"}
PATHS = json.loads(Path("openapi.json").read_text())["paths"]


async def main() -> None:
    bought = 0
    async with builder.httpx_options(base_url=URL, timeout=60).build() as client:
        for path, item in PATHS.items():
            if "x-price" not in item.get("post", {}):
                continue
            example = item["post"]["requestBody"]["content"]["application/json"]["example"]
            answer = await client.post(path, json=example)
            assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text[:300]}"
            assert RECEIPTS[PROTOCOL] in answer.headers, f"{path}: no receipt"
            bought += 1
    assert bought == 5, f"bought {bought} operations instead of 5"


asyncio.run(main())
