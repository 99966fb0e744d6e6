import { setting, type Served, type ValuesOf } from 'coinslot';
import { createFliteSpeaker } from './flite.js';
import type { Speaker } from './voices.js';

/** Slightly less than the 20 s that work may take, so that waiting too long in a queue gives 503 and not 502. */
const SPEECH_DEADLINE_MS = 19_000;

/** The settings of every operation that uses a speaker. */
export const SPEAKER_SETTINGS = {
  url: setting.url('PIPER_URL', 'a Piper server that speaks instead of the embedded engine'),
};

/** The operator's Piper server if there is one, otherwise the embedded engine. The other one is not loaded. */
export async function createSpeaker({
  settings: { url },
}: {
  settings: ValuesOf<typeof SPEAKER_SETTINGS>;
}): Promise<Speaker> {
  if (url === undefined) return createFliteSpeaker({ deadlineMs: SPEECH_DEADLINE_MS });
  const { createPiperSpeaker } = await import('./piper.js');
  return createPiperSpeaker({ url });
}

/** The backend of the operations that use a speaker. */
export function servedBy(speaker: Speaker): Pick<Served<unknown>, 'backend' | 'health' | 'close'> {
  return {
    backend: 'speech',
    health: async () => {
      const { status, detail } = await speaker.health();
      if (status !== 'ok') throw new Error(detail ?? status);
      return { detail: speaker.name };
    },
    close: () => speaker.close(),
  };
}
