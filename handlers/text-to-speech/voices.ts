/** An available voice. */
export type Voice = {
  /** The value of `voice_id`, for example `en_US-<name>-medium`. */
  id: string;
  name: string;
  /** BCP 47 tag, `en-US`. */
  language: string;
  /** Piper's scale: `x_low`, `low`, `medium` or `high`. */
  quality: string;
  /** Sample rate of the answer, whatever rate the engine uses: always 22 050. */
  sampleRateHz: number;
  /** The highest frequency that the voice can contain: half the sample rate of the engine. Absent if the engine does not report it. */
  bandwidthHz?: number;
  license: string;
};

/** `default` is the id of one of `voices`, which is never empty. */
export type VoiceList = { default: string; voices: Voice[] };

/**
 * A complete RIFF file: mono, 22 050 Hz, 16 bit PCM, true sizes in its header. `bandwidthHz`: the highest frequency that the file can
 * contain, given the rate at which it was synthesized.
 */
export type SpokenWav = { wav: Buffer; bandwidthHz: number };

/** `voiceId` is the voice that was used. */
export type Speech = SpokenWav & { voiceId: string };

export type SpeakerHealth = { status: 'ok' | 'degraded'; latencyMs?: number; detail?: string };

/**
 * Turns English text into speech (`textToSpeech` and `listVoices` in openapi.yaml).
 *
 * `speak` takes a text whose length the contract allows; without a `voiceId` it uses the default voice. `caller` names the caller whose
 * share of the queue the call uses. `speak` and `voices` throw `UpstreamFailure`: `invalid` for text with nothing to say or with words
 * that the voice cannot speak (it names them), a speech that is too long, or an unknown voice; `failed` if there was no usable audio in
 * time; `unavailable` if the queue is full or the engine can't be reached. If `signal` aborts, `speak` throws its reason.
 */
export type Speaker = {
  /** Short name for logs and health. */
  name: string;
  /** True if the audio does not come from a real engine. */
  mock: boolean;
  /** Returns the list from memory, except the first time and about once a minute. */
  voices(): Promise<VoiceList>;
  speak(text: string, voiceId: string | undefined, signal: AbortSignal, caller?: string): Promise<Speech>;
  /** Never throws. */
  health(): Promise<SpeakerHealth>;
  /** Ends running and waiting work; it then fails as `unavailable`. */
  close(): Promise<void>;
};

export const QUEUE_FULL = 'The speech queue is full; try again shortly.';

export const SAID_TOO_LATE =
  'Too many speech requests: a text of this length would not be spoken in time; try again shortly, or send a shorter text.';

export const OUTPUT_RATE_HZ = 22_050;

/** The highest frequency of a sound that was made at `rateHz` and is sent at the rate of the answers. */
export function bandwidthOf(rateHz: number): number {
  return Math.floor(Math.min(rateHz, OUTPUT_RATE_HZ) / 2);
}

/** The value of `X-TTS-Format`. */
export const OUTPUT_FORMAT = 'audio/wav; codec=pcm_s16le; rate=22050; channels=1';
