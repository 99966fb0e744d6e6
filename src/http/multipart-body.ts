import { Busboy, type BusboyFileStream } from '@fastify/busboy';
import { parse as parseType } from 'content-type';
import { isUtf8 } from 'node:buffer';
import { MULTIPART_TYPE } from '../contract/body-types.js';
import type { FormField } from '../contract/form-body.js';
import type { Part } from '../contract/multipart.js';
import { isFileName } from '../contract/sent-file.js';
import { BodyFault, parseJson, type Counted } from './json-body.js';

/** One part of the form, as sent. */
type Sent = { name: string; bytes: Buffer; filename: string | undefined; type: string };

/** Each part takes about 0.2 ms to read; no form needs this many parts. */
const MAX_PARTS = 256;
/** The limits for the headers of a part, which contain its name, type and file name. No client writes more. */
const HEADERS = { headerPairs: 16, headerSize: 8 * 1024 };
/** Allows longer boundaries than any client uses (RFC 2046: 70 characters), but no character that ends a quoted string. */
const BOUNDARY = /^[ !#-[\]-~]{1,200}$/;
const FAULT =
  'the body is not a complete multipart/form-data form, although its Content-Type says that it is one';
const FILE_TYPE = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+$/;

/**
 * Reads a multipart form, at most 256 parts; the caller has already bounded its size.
 * @param header its Content-Type, which names its boundary
 * @throws BodyFault
 */
export async function readMultipart(
  bytes: Buffer,
  header: string,
  fields: readonly FormField[],
): Promise<Part[]> {
  const sent = await sentParts(bytes, header);
  const counted: Counted = { members: 0 };
  return sent.map(part => partOf(part, fields.find(({ name }) => name === part.name)?.as, counted));
}

/** All parts are read like files, as bytes, so that nothing is lost. */
function sentParts(bytes: Buffer, header: string): Promise<Sent[]> {
  return new Promise((resolve, reject) => {
    const parts: Sent[] = [];
    const fault = (words = FAULT): void => reject(new BodyFault(words));
    const { boundary = '' } = parseType(header).parameters;
    const delimiters = BOUNDARY.test(boundary) ? delimitersIn(bytes, boundary) : 0;
    if (delimiters === 0) return fault();
    if (delimiters > MAX_PARTS + 1) return fault('the form has too many fields');
    const parser = parserOf(boundary, bytes.length);
    const add = (
      name: string | undefined,
      stream: BusboyFileStream,
      filename: string | undefined,
      encoding: string,
      type: string,
    ): void => {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => void chunks.push(chunk));
      stream.on('error', () => fault());
      stream.on('end', () => parts.push({ name: name ?? '', bytes: Buffer.concat(chunks), filename, type }));
      if (name === undefined) fault('each part of the form needs a name');
      if (!/^(7bit|8bit|binary)$/.test(encoding))
        fault(`${name} must be sent as it is, without Content-Transfer-Encoding`);
    };
    parser.on('file', add);
    parser.on('error', () => fault());
    // The parser silently skips parts that it does not understand.
    parser.on('finish', () => (parts.length === delimiters - 1 ? resolve(parts) : fault()));
    parser.end(bytes);
  });
}

/**
 * How many times a form's boundary begins a line. Counted before anything is parsed, because ten thousand parts
 * would take seconds to parse.
 */
function delimitersIn(bytes: Buffer, boundary: string): number {
  const delimiter = Buffer.from(`\r\n--${boundary}`, 'latin1');
  let count = bytes.indexOf(delimiter.subarray(2)) === 0 ? 1 : 0;
  for (let at = bytes.indexOf(delimiter); at >= 0 && count <= MAX_PARTS + 1; count++)
    at = bytes.indexOf(delimiter, at + delimiter.length);
  return count;
}

/**
 * The Content-Type header for the parser is written here, because in a header with two boundaries the parser might use the one that was not
 * counted. The parser's buffer holds the whole body, because with a smaller buffer the parser would skip a part and then wait forever for
 * someone to read it.
 */
function parserOf(boundary: string, bytes: number): InstanceType<typeof Busboy> {
  const headers = { 'content-type': `${MULTIPART_TYPE}; boundary="${boundary}"` };
  return new Busboy({ headers, limits: HEADERS, fileHwm: bytes + 1, isPartAFile: () => true });
}

/**
 * @param as the contract's schema of the form
 * @param counted shared by all JSON in the form
 */
function partOf({ name, bytes, filename, type }: Sent, as: FormField['as'], counted: Counted): Part {
  if (as === 'json') return { name, json: jsonOf(name, bytes, counted) };
  if (as === undefined && filename === undefined) return { name, text: utf8(name, bytes) };
  if (filename !== undefined && !isFileName(filename))
    throw new BodyFault(`the file name of ${name} must not be empty or contain control characters`);
  const named = filename === undefined ? {} : { name: filename };
  return { name, file: { bytes, type: FILE_TYPE.test(type) ? type : 'application/octet-stream', ...named } };
}

function jsonOf(name: string, bytes: Buffer, counted: Counted): unknown {
  try {
    return parseJson(bytes, 'JSON', counted);
  } catch (error) {
    if (!(error instanceof BodyFault)) throw error;
    throw new BodyFault(`${name} must be JSON: ${error.message.replace(/^the body/, 'it')}`);
  }
}

function utf8(name: string, bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new BodyFault(`${name} is not UTF-8; encode it as UTF-8`);
  return bytes.toString('utf8');
}
