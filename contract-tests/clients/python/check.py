import base64
import json
import os

URL = os.environ["COINSLOT_URL"]
TEXT = "The harbour bridge will close for repairs on Monday. Ferries run every ten minutes until it opens again."


def expect_paid(answer) -> None:
    """Checks that the answer was paid for on the chain."""
    assert int(answer.status_code) == 200, f"status {answer.status_code}"
    receipt = json.loads(base64.b64decode(answer.headers["PAYMENT-RESPONSE"]))
    assert receipt["success"] and receipt["transaction"], receipt
