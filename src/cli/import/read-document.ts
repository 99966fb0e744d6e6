import { readFile, stat } from 'node:fs/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { resolve } from 'node:path';
import { ImportFault, MAX_DOCUMENT_BYTES } from '../../contract/import/source-document.js';
import { HttpClient, NoAnswer } from '../../net/http-client.js';

const FETCH_MS = 20_000;
const MAX_REDIRECTS = 5;
const ACCEPT = {
  accept: 'application/json, application/yaml, text/yaml, */*;q=0.5',
  'user-agent': 'coinslot',
};

/** The location of a document that the user named: a URL or a file. */
export function placeOf(name: string): URL {
  return /^https?:\/\//i.test(name) && URL.canParse(name) ? new URL(name) : pathToFileURL(resolve(name));
}

/**
 * Reads a text from the web or a file.
 * @param origin the only origin to request; without it, redirects may lead anywhere
 * @returns the text, and its final address
 * @throws ImportFault that says why it can't be read
 */
export async function readDocument(place: URL, origin?: string): Promise<{ text: string; at: URL }> {
  return place.protocol === 'file:' ? { text: await readLocal(place), at: place } : fetched(place, origin);
}

async function readLocal(place: URL): Promise<string> {
  const file = fileURLToPath(place);
  try {
    const { size } = await stat(file);
    if (size > MAX_DOCUMENT_BYTES) throw tooLarge(file);
    return await readFile(file, 'utf8');
  } catch (error) {
    if (error instanceof ImportFault) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    throw new ImportFault(
      code === 'ENOENT' ? `There is no file ${file}.` : `${file} can't be read: ${message}`,
    );
  }
}

async function fetched(from: URL, origin?: string): Promise<{ text: string; at: URL }> {
  const until = performance.now() + FETCH_MS;
  let at = from;
  for (let hops = 0; hops <= MAX_REDIRECTS; hops++) {
    const answer = await get(at, until - performance.now());
    const next = answer.header('location');
    if (answer.status < 300 || answer.status > 399 || next === undefined) {
      if (answer.status === 200) return { text: answer.text, at };
      throw new ImportFault(
        `${at.href} answers ${answer.status}, not 200. Is it the address of the document?`,
      );
    }
    const target = URL.canParse(next, at.href) ? new URL(next, at) : undefined;
    if (!target || !/^https?:$/.test(target.protocol))
      throw new ImportFault(`${at.href} redirects to ${next.slice(0, 200)}, which is not a web address.`);
    if (origin !== undefined && target.origin !== origin)
      throw new ImportFault(
        `${at.href} redirects to ${target.origin}, but only files next to the document are read.`,
      );
    at = target;
  }
  throw new ImportFault(`${from.href} redirects more than ${MAX_REDIRECTS} times.`);
}

async function get(at: URL, ms: number) {
  const client = new HttpClient(at.href, {
    connections: 1,
    maxAnswerBytes: MAX_DOCUMENT_BYTES,
    headers: ACCEPT,
  });
  try {
    return await client.request({ method: 'GET', path: '', ms, maxAnswerBytes: MAX_DOCUMENT_BYTES });
  } catch (error) {
    if (!(error instanceof NoAnswer)) throw error;
    if (error.kind === 'too large') throw tooLarge(at.href);
    throw new ImportFault(
      error.kind === 'late'
        ? `${at.href} did not answer in full within ${FETCH_MS / 1000} s.`
        : `${at.href} can't be fetched: ${error.message}. Is the API running?`,
    );
  } finally {
    await client.close();
  }
}

function tooLarge(name: string): ImportFault {
  return new ImportFault(`${name} is larger than ${MAX_DOCUMENT_BYTES >> 20} MB.`);
}
