"""What Schemathesis can't know: how a call is paid, and what payment promises beyond the schemas.

The runner (run.ts) sets FUZZ_SIGNER to a local helper that signs a real payment of the sandbox for one call. Without it
nothing is paid, and every call of a paid operation must be refused with its price.
"""

import base64
import itertools
import json
import os
import urllib.parse
import urllib.request

import schemathesis

SIGNER = os.environ.get("FUZZ_SIGNER")
RECEIPTS = ("payment-response", "x-payment-response")
MINTS = os.environ.get("FUZZ_MINTS", "").split()
payments = itertools.count()


def is_priced(case):
    """Whether a call is one that costs money; some cases use a method that the operation does not have."""
    return case.method.upper() == case.operation.method.upper() and "x-price" in case.operation.definition.raw


def operation_id(case):
    return case.operation.definition.raw["operationId"]


def header(response, name):
    values = response.headers.get(name)
    return values[0] if values else None


def ask_signer(path, body=None):
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(SIGNER + path, data=data), timeout=30) as answer:
        return json.load(answer)


def use_a_real_mint(case, number):
    """No generated address is a mint of the sandbox's chain: every second one becomes one."""
    if not (MINTS and case.meta.generation.mode.is_positive and isinstance(case.body, dict) and "mint" in case.body):
        return
    if number % 2 and case.meta.phase.name.value != "examples":
        case.body = {**case.body, "mint": MINTS[number % len(MINTS)]}


@schemathesis.hook
def before_call(context, case, kwargs):
    """Signs a payment for every single call: one that was used before would be answered from the ledger.

    Generated values of the payment headers give way to it, since two different payments are refused.
    """
    if not SIGNER or not is_priced(case):
        return
    number = next(payments)
    use_a_real_mint(case, number)
    for name in ("PAYMENT-SIGNATURE", "X-PAYMENT"):
        case.headers.pop(name, None)
    query = urllib.parse.urlencode({"operation": operation_id(case), "version": 1 + number % 2})
    case.headers.update(ask_signer(f"/sign?{query}"))


@schemathesis.hook
def after_call(context, case, response):
    """Tells the signer what was answered, so that the runner can compare the answers with the money that moved."""
    if SIGNER and is_priced(case):
        receipts = [header(response, name) for name in RECEIPTS]
        ask_signer("/answered", {"operation": operation_id(case), "receipts": [r for r in receipts if r]})


@schemathesis.check
def unpaid_means_price(ctx, response, case):
    """Without a valid payment a paid operation answers 402, and its header is the base64 of its body, byte for byte; a v1 challenge has none."""
    if SIGNER or not is_priced(case):
        return
    assert response.status_code == 402, f"an unpaid call was answered {response.status_code}"
    challenge = header(response, "payment-required")
    if response.json()["x402Version"] == 1:
        assert challenge is None, "a v1 challenge has the header that clients take to mean v2"
        return
    assert challenge is not None, "the PAYMENT-REQUIRED header is missing"
    assert len(challenge) <= 4096, f"the PAYMENT-REQUIRED header takes {len(challenge)} bytes"
    assert base64.b64decode(challenge, validate=True) == response.content, "PAYMENT-REQUIRED is not the base64 of the body"


@schemathesis.check
def charged_means_answered(ctx, response, case):
    """A paid call answers 200 with a receipt of success, or 400 without having asked for money."""
    if not SIGNER or not is_priced(case):
        return
    receipts = [header(response, name) for name in RECEIPTS]
    receipts = [json.loads(base64.b64decode(receipt, validate=True)) for receipt in receipts if receipt]
    if response.status_code == 200:
        assert len(receipts) == 1, f"an answer carries {len(receipts)} receipts"
        assert receipts[0]["success"] is True and receipts[0]["transaction"], "the receipt names no settlement"
    else:
        assert response.status_code == 400, f"a paid call was answered {response.status_code}: {response.text[:200]}"
        assert not receipts, "an invalid call was settled"
