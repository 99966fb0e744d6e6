import asyncio

import httpx
from check import TEXT, URL, expect_paid
from coinslot_client import Client
from coinslot_client.api.audio import text_to_speech
from coinslot_client.api.service import list_voices
from coinslot_client.api.text import summarize
from coinslot_client.models import SummarizeBody, TextToSpeechBody
from wallet import RPC_URL, signer
from x402 import x402Client
from x402.http.clients.httpx import x402AsyncTransport
from x402.mechanisms.svm.exact.register import register_exact_svm_client


async def main() -> None:
    wallet = register_exact_svm_client(x402Client(), signer, rpc_url=RPC_URL)
    client = Client(base_url=URL, timeout=httpx.Timeout(60), httpx_args={"transport": x402AsyncTransport(wallet)})
    answer = await summarize.asyncio_detailed(client=client, body=SummarizeBody(text=TEXT))
    expect_paid(answer)
    assert answer.parsed.summary

    answer = await text_to_speech.asyncio_detailed(client=client, body=TextToSpeechBody(text="One coin."))
    expect_paid(answer)
    assert answer.parsed.payload.read(4) == b"RIFF"

    voices = await list_voices.asyncio(client=client)
    assert voices.default in [voice.id for voice in voices.voices]


asyncio.run(main())
