import type { AnswerSecret } from '../../src/http/answer-secrets.js';

/** An answer secret that never expires. */
export function answerSecret(bytes: Buffer): AnswerSecret {
  return { secret: bytes.toString('hex'), from: 0, until: null };
}
