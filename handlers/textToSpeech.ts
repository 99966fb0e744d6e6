import type { operations } from '../generated/openapi.js';
import type { Handler } from '../src/contract/operation.js';
import { OUTPUT_FORMAT, type Speaker } from '../src/upstreams/voices/voices.js';

/** Sells a text as speech: WAV, mono, 22.05 kHz. */
export function textToSpeech(speaker: Speaker): Handler<operations['textToSpeech']> {
  return async ({ body, signal, caller }) => {
    const { wav, voiceId, bandwidthHz } = await speaker.speak(body.text, body.voice_id, signal, caller);
    const headers = {
      'X-TTS-Voice-Id': voiceId,
      'X-TTS-Format': OUTPUT_FORMAT,
      'X-TTS-Bandwidth-Hz': String(bandwidthHz),
    };
    return { status: 200, body: wav, headers };
  };
}
