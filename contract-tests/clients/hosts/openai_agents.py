import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from examine import Host, Server, examine

set_tracing_disabled(True)


class OneCall(Model):
    """Stands in for a model: requests one call, and records what it gets of the result."""

    def __init__(self, name: str, args: dict) -> None:
        self.asked = ResponseFunctionToolCall(
            type="function_call", call_id="call", name=name, arguments=json.dumps(args)
        )
        self.texts: list[str] = []

    async def get_response(self, system_instructions, input, *_, **__) -> ModelResponse:
        results = [item for item in input if isinstance(item, dict) and item.get("type") == "function_call_output"]
        if not results:
            return ModelResponse(output=[self.asked], usage=Usage(), response_id=None)
        output = results[0]["output"]
        parts = [output] if isinstance(output, str) else output
        self.texts = [part if isinstance(part, str) else part.get("text", json.dumps(part)) for part in parts]
        text = ResponseOutputText(type="output_text", text="done", annotations=[])
        said = ResponseOutputMessage(
            id="said", type="message", role="assistant", status="completed", content=[text]
        )
        return ModelResponse(output=[said], usage=Usage(), response_id=None)

    def stream_response(self, *_, **__):
        raise NotImplementedError


@asynccontextmanager
async def connected(server: Server) -> AsyncIterator[Host]:
    payments: dict[str, dict | None] = {}

    def meta(call) -> dict | None:
        payment = payments.get(call.tool_name)
        return {"x402/payment": payment} if payment else None

    options = {"client_session_timeout_seconds": 60, "tool_meta_resolver": meta}
    opened = (
        MCPServerStreamableHttp({"url": server.url}, **options)
        if server.url
        else MCPServerStdio({"command": server.command[0], "args": server.command[1:]}, **options)
    )
    async with opened as shop:

        async def call(name: str, args: dict, payment: dict | None) -> list[str]:
            payments[name] = payment
            model = OneCall(name, args)
            await Runner.run(Agent(name="buyer", model=model, mcp_servers=[shop]), "Buy.")
            return model.texts

        yield Host([tool.name for tool in await shop.list_tools()], call)


examine(connected)
