"""Buys every operation of a sandbox by one protocol, without an RPC server for anything. Usage: buy.py x402|mpp"""

import asyncio
import json
import os
import sys
from pathlib import Path

from solana_pay_kit.client import PayKitClient
from solana_pay_kit.signer import LocalSigner

URL = os.environ["COINSLOT_URL"]
SIGNER = LocalSigner.from_bytes(bytes(json.loads(Path(os.environ["KEYPAIR"]).read_text())))
RECEIPTS = {"x402": "PAYMENT-RESPONSE", "mpp": "Payment-Receipt"}
PROTOCOL = sys.argv[1]
PATHS = json.loads(Path("openapi.json").read_text())["paths"]


class NoRpc:
    def __getattr__(self, name):
        raise AssertionError(f"the RPC was asked: {name}")


async def main() -> None:
    builder = PayKitClient.builder().signer(SIGNER).rpc(NoRpc()).network("devnet").accept([PROTOCOL])
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
