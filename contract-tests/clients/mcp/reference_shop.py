"""A third-party shop: an MCP server of the official SDK with one tool that x402's Python package sells. Prints its address."""

import os
import socket

from mcp.server.fastmcp import FastMCP
from x402 import ResourceConfig, x402ResourceServer
from x402.http import FacilitatorConfig, HTTPFacilitatorClient
from x402.mcp import create_payment_wrapper
from x402.mechanisms.svm.exact.register import register_exact_svm_server

facilitator = HTTPFacilitatorClient(FacilitatorConfig(url=os.environ["FACILITATOR"]))
sells = register_exact_svm_server(x402ResourceServer(facilitator), rpc_url=os.environ["RPC_URL"])
sells.initialize()
price = ResourceConfig(scheme="exact", network=os.environ["CHAIN"], pay_to=os.environ["PAYEE"], price="$0.01")

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
shop = FastMCP("reference", host="127.0.0.1", port=port, log_level="CRITICAL")


@shop.tool(description="Counts the words of a text. Costs $0.01 in USDC over x402.")
@create_payment_wrapper(sells, accepts=sells.build_payment_requirements(price))
async def count_words(text: str = "") -> dict[str, int]:
    return {"words": len(text.split())}


@shop.tool(description="Says which languages are counted. Free.")
def languages() -> str:
    return "all"


print(f"http://127.0.0.1:{port}/mcp", flush=True)
shop.run(transport="streamable-http")
