import { withSettings, type Handler, type Served } from 'coinslot';
import type { operations } from '../../generated/openapi.js';
import { createSpeaker, servedBy, SPEAKER_SETTINGS } from './create-speaker.js';
import { OUTPUT_FORMAT, type Speaker } from './voices.js';

type TextToSpeech = operations['textToSpeech'];

/** Sells a text as speech: WAV, mono, 22.05 kHz. */
export const textToSpeech = withSettings(
  SPEAKER_SETTINGS,
  async ({ shared }): Promise<Served<TextToSpeech>> => {
    const speaker = await shared(createSpeaker);
    return { call: textToSpeechBy(speaker), ...servedBy(speaker) };
  },
);

/** @public for the benchmarks */
export function textToSpeechBy(speaker: Speaker): Handler<TextToSpeech> {
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
