"""Fixtures that run a shop in a sandbox. `shop.url` is its address; its methods control the sandbox (docs/how-to/testing.md)."""

import json
import os
import shlex
import subprocess
import urllib.error
import urllib.request

import pytest


class Shop:
    def __init__(self, facts: dict):
        self.url = facts["url"]
        self.facts = facts

    def post(self, command: str, **given) -> dict:
        request = urllib.request.Request(f"{self.facts['control']}/{command}", json.dumps(given).encode(), method="POST")
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refused:
            raise RuntimeError(json.load(refused)["error"]) from None

    def buy(self, operation_id: str, **given) -> dict:
        return self.post("buy", operationId=operation_id, **given)


@pytest.fixture(scope="session")
def running():
    # The current folder must be the shop's, with Coinslot installed in it.
    command = shlex.split(os.environ.get("COINSLOT", "node_modules/.bin/coinslot"))
    program = subprocess.Popen([*command, "testing"], stdout=subprocess.PIPE, text=True)
    line = program.stdout.readline()
    assert line, "coinslot testing did not start"
    yield Shop(json.loads(line))
    program.terminate()
    program.wait(timeout=60)


@pytest.fixture
def shop(running):
    yield running
    running.post("clear")
