import type { AnswerSecret } from '../../src/http/answer-secrets.js';

/** One that counts for good. */
export function answerSecret(bytes: Buffer): AnswerSecret {
  return { secret: bytes.toString('hex'), from: 0, until: null };
}
