"""Buys every paid tool with the MCP session of x402's Python package."""

import asyncio
import json
import os
from pathlib import Path

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client
from x402 import x402Client
from x402.mcp import x402MCPSession
from x402.mechanisms.svm import KeypairSigner
from x402.mechanisms.svm.exact.register import register_exact_svm_client

URL = os.environ["COINSLOT_URL"]
MAX_BYTES = 4096  # the size limit of one text for a model, in bytes
signer = KeypairSigner.from_bytes(bytes(json.loads(Path(os.environ["KEYPAIR"]).read_text())))


def short(result):
    assert all(len(getattr(part, "text", "").encode()) <= MAX_BYTES for part in result.content), result
    return result


async def main() -> None:
    wallet = register_exact_svm_client(x402Client(), signer, rpc_url=os.environ["RPC_URL"])
    async with streamablehttp_client(f"{URL}/mcp") as (read, write, _):
        async with ClientSession(read, write) as session:
            buyer = x402MCPSession(session, wallet)
            await buyer.initialize()
            tools = (await buyer.list_tools()).tools
            voices = short(await session.call_tool("listVoices", {}))
            assert "default" in voices.content[0].text, voices
            bought = 0
            for tool in tools:
                unpaid = short(await session.call_tool(tool.name, {}))
                required = unpaid.structuredContent or {}
                if "accepts" not in required:
                    continue
                example = required["extensions"]["bazaar"]["info"]["input"]["example"]
                answer = short(await buyer.call_tool(tool.name, example))
                assert answer.payment_made and not answer.is_error, answer
                assert answer.payment_response.success, answer.payment_response
                bought += 1
            assert bought == 5, bought


asyncio.run(main())
