import base64
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools

from examine import Host, Server, examine


@asynccontextmanager
async def connected(server: Server) -> AsyncIterator[Host]:
    payments: dict[str, dict | None] = {}

    # An interceptor can set headers, but not metadata.
    async def pay(request, handler):
        if payment := payments.get(request.name):
            header = base64.b64encode(json.dumps(payment).encode()).decode()
            request = request.override(headers={"PAYMENT-SIGNATURE": header})
        return await handler(request)

    shop = (
        {"transport": "streamable_http", "url": server.url}
        if server.url
        else {"transport": "stdio", "command": server.command[0], "args": server.command[1:]}
    )
    client = MultiServerMCPClient({"shop": shop}, tool_interceptors=[pay])
    # Without a session, each call connects again, which restarts the wallet; with one, an interceptor's headers are not sent.
    async with AsyncExitStack() as stack:
        session = None if server.url else await stack.enter_async_context(client.session("shop"))
        listed = await (load_mcp_tools(session) if session else client.get_tools())
        tools = {tool.name: tool for tool in listed}

        async def call(name: str, args: dict, payment: dict | None) -> list[str]:
            payments[name] = payment
            message = await tools[name].ainvoke({"type": "tool_call", "id": "call", "name": name, "args": args})
            parts = [message.content] if isinstance(message.content, str) else message.content
            return [part if isinstance(part, str) else part.get("text", json.dumps(part)) for part in parts]

        yield Host(list(tools), call)


examine(connected)
