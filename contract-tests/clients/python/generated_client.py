import asyncio
import json
import os
from pathlib import Path

import httpx
from coinslot_client import Client
from coinslot_client.api.text import summarize
from coinslot_client.models import SummarizeBody
from x402 import x402Client
from x402.http.clients.httpx import x402AsyncTransport
from x402.mechanisms.svm import KeypairSigner
from x402.mechanisms.svm.exact.register import register_exact_svm_client

signer = KeypairSigner.from_bytes(bytes(json.loads(Path(os.environ["KEYPAIR"]).read_text())))
wallet = register_exact_svm_client(x402Client(), signer, rpc_url=os.environ["RPC_URL"])
pays = {"transport": x402AsyncTransport(wallet)}
client = Client(base_url=os.environ["COINSLOT_URL"], timeout=httpx.Timeout(60), httpx_args=pays)
text = "The bridge is closed. Ferries run every ten minutes. Work takes six weeks."
answer = asyncio.run(summarize.asyncio_detailed(client=client, body=SummarizeBody(text=text)))
print(answer.parsed.summary)

# Everything above this line is the code from docs/how-to/clients.md.
from check import expect_paid  # noqa: E402
from coinslot_client.api.audio import text_to_speech  # noqa: E402
from coinslot_client.api.service import list_voices  # noqa: E402
from coinslot_client.models import TextToSpeechBody  # noqa: E402


async def main() -> None:
    expect_paid(answer)
    # One transport serves one event loop.
    own = {"transport": x402AsyncTransport(wallet)}
    client = Client(base_url=os.environ["COINSLOT_URL"], timeout=httpx.Timeout(60), httpx_args=own)
    assert answer.parsed.summary

    speech = await text_to_speech.asyncio_detailed(client=client, body=TextToSpeechBody(text="One coin."))
    expect_paid(speech)
    assert speech.parsed.payload.read(4) == b"RIFF"

    voices = await list_voices.asyncio(client=client)
    assert voices.default in [voice.id for voice in voices.voices]


asyncio.run(main())
