/** The headers of answers that a page of another origin may read. */
export const EXPOSED_HEADERS =
  'PAYMENT-REQUIRED, PAYMENT-RESPONSE, X-PAYMENT-RESPONSE, Retry-After, ETag, X-TTS-Voice-Id, X-TTS-Format';
