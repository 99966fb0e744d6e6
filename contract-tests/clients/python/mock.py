"""Buys every operation of a mock, with a key that owns nothing and without an RPC server."""

import asyncio
import base64
import json

import httpx
from check import URL
from solders.keypair import Keypair
from x402 import x402Client
from x402.http.clients.httpx import x402AsyncTransport
from x402.mechanisms.svm import KeypairSigner
from x402.mechanisms.svm.exact.register import register_exact_svm_client


def calls(document: dict):
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if not isinstance(operation, dict) or "x-price" not in operation:
                continue
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("example")
            for parameter in [*item.get("parameters", []), *operation.get("parameters", [])]:
                if parameter.get("in") == "path":
                    path = path.replace("{" + parameter["name"] + "}", str(parameter["example"]))
            yield operation["operationId"], method.upper(), path, body


async def main() -> None:
    document = httpx.get(f"{URL}/openapi.json", timeout=20).json()
    assert "x-mock" in document["info"], f"{URL} is not a mock"
    signer = KeypairSigner.from_bytes(bytes(Keypair()))
    wallet = register_exact_svm_client(x402Client(), signer, rpc_url=document["info"]["x-mock"]["rpcUrl"])
    bought = []
    async with httpx.AsyncClient(base_url=URL, transport=x402AsyncTransport(wallet), timeout=30) as client:
        for name, method, path, body in calls(document):
            assert (await httpx.AsyncClient().request(method, URL + path, json=body)).status_code == 402, name
            answer = await client.request(method, path, json=body)
            assert answer.status_code == 200, f"{name}: {answer.status_code} {answer.text[:200]}"
            receipt = json.loads(base64.b64decode(answer.headers["PAYMENT-RESPONSE"]))
            assert receipt["success"] and receipt["transaction"].startswith("mock"), receipt
            bought.append(name)
    assert bought, "the mock sells nothing"
    print("bought", *bought)


asyncio.run(main())
