from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

from examine import Host, Server, examine


@asynccontextmanager
async def connected(server: Server) -> AsyncIterator[Host]:
    transport = (
        StreamableHttpTransport(server.url)
        if server.url
        else StdioTransport(server.command[0], server.command[1:])
    )
    async with Client(transport, timeout=60) as client:

        async def call(name: str, args: dict, payment: dict | None) -> list[str]:
            meta = {"x402/payment": payment} if payment else None
            result = await client.call_tool(name, args, meta=meta, raise_on_error=False)
            return [part.text if part.type == "text" else part.model_dump_json() for part in result.content]

        yield Host([tool.name for tool in await client.list_tools()], call)


examine(connected)
