import { request } from 'undici';
import { NoAnswer } from '../../net/http-client.js';
import type { Message } from '../../webhooks/event-message.js';

/** The server sends a heartbeat more often than this. */
const SILENCE_MS = 60_000;
const MAX_LINE = 1024 * 1024;

/**
 * The messages of a server as they arrive, until it ends the stream.
 * @throws NoAnswer if it can't be reached, refuses, or falls silent
 */
export async function* readEvents(url: string, token: string): AsyncGenerator<Message> {
  const headers = { authorization: `Bearer ${token}`, accept: 'text/event-stream' };
  try {
    const { statusCode, body } = await request(url, { headers, bodyTimeout: SILENCE_MS });
    if (statusCode !== 200)
      throw new Error(`it answered ${statusCode}: ${(await body.text()).trim().slice(0, 500)}`);
    let rest = '';
    for await (const chunk of body.setEncoding('utf8')) {
      const lines = (rest + String(chunk)).split('\n');
      rest = lines.pop() ?? '';
      if (rest.length > MAX_LINE) throw new Error('it sends a line that never ends');
      for (const line of lines) if (line.startsWith('data: ')) yield JSON.parse(line.slice(6)) as Message;
    }
    throw new Error('it has ended the stream: the server has stopped');
  } catch (error) {
    throw new NoAnswer('broken', error);
  }
}
