import { createHash } from 'node:crypto';
import { readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Json } from '../../contract/json.js';
import { objectOf } from '../../contract/references.js';
import { NETWORKS } from '../../rails/solana/networks.js';
import type { Purse } from '../../wallet/purse.js';
import { readSigned } from '../../wallet/signer.js';
import { BuyFault, parseJson } from '../../wallet/shop-client.js';

/** A call, and the values from which version 1.0.0 derived the name of its payment file. */
type OldCall = { name: string; shop: string; tool: string; url: string; body: string; keypair: Uint8Array };

/**
 * Takes over an unanswered payment that version 1.0.0 kept in its own file, so that the call continues with it and does not pay twice.
 * @throws BuyFault if there is such a payment but it can't be continued
 */
export async function adoptOldPayment(
  stateDir: string,
  { name, shop, tool, url, body, keypair }: OldCall,
  purse: Purse,
): Promise<void> {
  const hash = createHash('sha256').update(`${url}\n${body}\n`).update(keypair).digest('hex').slice(0, 32);
  const file = join(stateDir, 'pending-payments', `${hash}.json`);
  let text: Buffer;
  try {
    text = readFileSync(file);
  } catch {
    return;
  }
  try {
    const { headers, amount } = objectOf(parseJson(text));
    const [header] = Object.values(objectOf(headers));
    const payment = parseJson(Buffer.from(String(header), 'base64')) as Json;
    const { network: caip2, payTo } = objectOf(payment.accepted);
    const network = Object.values(NETWORKS).find(each => each.caip2 === caip2);
    if (!network) throw new Error('its network is unknown');
    const offer = { network, payTo: String(payTo), amount: BigInt(String(amount)) };
    const signed = await readSigned(payment, offer);
    const kept = {
      ...signed,
      ...offer,
      call: name,
      shop,
      tool,
      network: network.caip2,
      amount: String(amount),
    };
    const refused = purse.add(kept, offer.amount + 2n ** 63n, statSync(file).mtimeMs);
    if (refused?.kind === 'full') throw new Error('the wallet has too many payments without an answer');
  } catch (error) {
    throw new BuyFault(
      `The payment that an earlier version saved in ${file} can't be continued: ${String(error)}. Nothing was paid this time. If its call was answered, delete the file.`,
    );
  }
  rmSync(file);
}
