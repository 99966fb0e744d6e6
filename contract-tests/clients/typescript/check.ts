import { decodePaymentResponseHeader } from '@x402/core/http';

export const url = process.env.COINSLOT_URL ?? '';
export const TEXT =
  'The harbour bridge will close for repairs on Monday. Ferries run every ten minutes until it opens again.';

export function expectThat(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(message);
}

/** Checks that the answer was paid for on the chain. */
export function expectPaid(status: number, receipt: unknown): void {
  expectThat(status === 200, `status ${status}`);
  expectThat(typeof receipt === 'string', 'no PAYMENT-RESPONSE header');
  const { success, transaction } = decodePaymentResponseHeader(receipt);
  expectThat(success && transaction, `not settled: ${receipt}`);
}

export function expectWav(bytes: ArrayBuffer): void {
  expectThat(Buffer.from(bytes, 0, 4).toString() === 'RIFF', 'the speech is no WAV file');
}
