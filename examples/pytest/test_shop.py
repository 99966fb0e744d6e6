import json
import os
import urllib.error
import urllib.request

# The operation to test. It is bought with the example request in the contract.
CALL = os.environ.get("CALL", "textStats")


def paid(shop) -> tuple[str, dict]:
    document = json.load(urllib.request.urlopen(f"{shop.url}/openapi.json", timeout=10))
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if isinstance(operation, dict) and operation.get("operationId") == CALL:
                return path, {"method": method.upper(), "price": operation["x-price"]["amount"]}
    raise AssertionError(f"the shop does not sell {CALL}")


def test_an_unpaid_call_gets_its_price(shop):
    path, operation = paid(shop)
    request = urllib.request.Request(shop.url + path, method=operation["method"])
    try:
        status = urllib.request.urlopen(request, timeout=10).status
    except urllib.error.HTTPError as answer:
        status = answer.code
    assert status == 402


def test_a_paid_call_costs_its_price(shop):
    answer = shop.buy(CALL)
    assert answer["status"] == 200
    assert float(answer["charged"]) == float(paid(shop)[1]["price"])
    assert answer["receipt"]["success"]


def test_a_price_that_was_offered_before_it_changed_still_buys(shop):
    signed = shop.post("sign", operationId=CALL)
    shop.post("inject", fault="price-change")
    answer = shop.post("send", call=signed["call"])
    assert (answer["status"], answer["charged"]) == (200, signed["price"])
