from check import TEXT, URL, expect_paid
from wallet import RPC_URL, signer
from x402 import x402ClientSync
from x402.http.clients.requests import x402_requests
from x402.mechanisms.svm.exact.register import register_exact_svm_client

wallet = register_exact_svm_client(x402ClientSync(), signer, rpc_url=RPC_URL)
with x402_requests(wallet) as session:
    answer = session.post(f"{URL}/v1/summarize", json={"text": TEXT}, timeout=60)
expect_paid(answer)
assert answer.json()["summary"]
