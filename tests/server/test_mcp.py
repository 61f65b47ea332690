"""The embed's MCP endpoint over plain HTTP: another program introduces itself, asks for the tools and calls one."""

from __future__ import annotations

import inspect
import itertools
import json

import pytest

httpx = pytest.importorskip("httpx", reason="httpx is not installed")


@pytest.fixture(scope="module")
def ask(server):
    """Send one JSON-RPC request and return its result."""
    numbers = itertools.count(1)
    with httpx.Client(timeout=180, headers={"Accept": "application/json, text/event-stream"}) as http:

        def call(method: str, **params):
            number = next(numbers)
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            answer = http.post(server.url + "/gradio/gradio_api/mcp/", json=message)
            assert answer.status_code == 200, answer.text
            lines = [line[5:] for line in answer.text.splitlines() if line.startswith("data:")]
            reply = json.loads(lines[-1] if lines else answer.text)
            assert reply["id"] == number
            return reply["result"]

        yield call


def test_it_answers_an_introduction(ask):
    me = {"name": "a test", "version": "1"}
    result = ask("initialize", protocolVersion="2025-03-26", capabilities={}, clientInfo=me)
    assert result["protocolVersion"] == "2025-03-26"
    assert "Plumbline" in result["serverInfo"]["name"]
    assert "tools" in result["capabilities"]


def test_its_one_tool_is_described_by_the_core_functions_docstring(ask):
    from core.lab.promise import outline

    (tool,) = ask("tools/list")["tools"]
    said = " ".join(inspect.getdoc(outline).split("Args:")[0].split())
    assert len(said) > 20
    assert said in " ".join(tool["description"].split())
    assert {"image", "mask", "alpha", "model"} <= set(tool["inputSchema"]["properties"])
    assert tool["inputSchema"]["properties"]["alpha"]["description"]


def test_its_tool_can_be_called(ask):
    (tool,) = ask("tools/list")["tools"]
    result = ask("tools/call", name=tool["name"], arguments={"alpha": 0.3})
    assert not result.get("isError")
    text = " ".join(part.get("text", "") for part in result["content"])
    assert "COAT" in text and "0.3" in text
