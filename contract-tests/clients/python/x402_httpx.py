import asyncio
import json
import os
from pathlib import Path

import httpx
from x402 import x402Client
from x402.http.clients.httpx import x402AsyncTransport
from x402.mechanisms.svm import KeypairSigner
from x402.mechanisms.svm.exact.register import register_exact_svm_client

signer = KeypairSigner.from_bytes(bytes(json.loads(Path(os.environ["KEYPAIR"]).read_text())))
wallet = register_exact_svm_client(x402Client(), signer, rpc_url=os.environ["RPC_URL"])


async def summarize(text: str) -> httpx.Response:
    url, pays = os.environ["COINSLOT_URL"], x402AsyncTransport(wallet)
    async with httpx.AsyncClient(base_url=url, transport=pays, timeout=60) as client:
        return await client.post("/v1/summarize", json={"text": text})


answer = asyncio.run(summarize("The bridge is closed. Ferries run every ten minutes. Work takes six weeks."))
print(answer.json()["summary"])

# Everything before this line is the code in docs/how-to/clients.md.
from check import expect_paid  # noqa: E402

expect_paid(answer)
