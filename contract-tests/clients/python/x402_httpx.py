import asyncio

import httpx
from check import TEXT, URL, expect_paid
from wallet import RPC_URL, signer
from x402 import x402Client
from x402.http.clients.httpx import x402AsyncTransport
from x402.mechanisms.svm.exact.register import register_exact_svm_client


async def main() -> None:
    wallet = register_exact_svm_client(x402Client(), signer, rpc_url=RPC_URL)
    async with httpx.AsyncClient(base_url=URL, transport=x402AsyncTransport(wallet), timeout=60) as client:
        answer = await client.post("/v1/summarize", json={"text": TEXT})
    expect_paid(answer)
    assert answer.json()["summary"]


asyncio.run(main())
