import { PaymentRequirementsSchema, x402ResponseSchema } from 'x402/types';

const { COINSLOT_URL } = process.env;
const document = await (await fetch(`${COINSLOT_URL}/.well-known/x402`)).json();
for (const resource of document.resources) {
  const challenge = await (await fetch(`${resource}?x402Version=1`, { method: 'POST' })).json();
  x402ResponseSchema.parse(challenge);
  if (challenge.x402Version !== 1 || challenge.accepts.length === 0)
    throw new Error(`${resource}: no v1 challenge`);
  for (const option of challenge.accepts) PaymentRequirementsSchema.parse(option);
}
