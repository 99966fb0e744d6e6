import json
import os
from pathlib import Path

from x402.mechanisms.svm import KeypairSigner

RPC_URL = os.environ["RPC_URL"]
signer = KeypairSigner.from_bytes(bytes(json.loads(Path(os.environ["KEYPAIR"]).read_text())))
