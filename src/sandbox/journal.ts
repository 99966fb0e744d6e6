import {
  closeSync,
  fdatasync,
  fdatasyncSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  writeSync,
} from 'node:fs';

/** Position of a line in the file, in bytes. */
export type Place = { offset: number; length: number };

const CHUNK = 1 << 20;
const MAX_LINE = 16 << 20;
const NEWLINE = 10;

/**
 * An append-only file of JSON lines. `append` hands the line to the operating system before it returns, so that it survives a
 * kill of the process; after `durable`, it also survives a power failure. An incomplete last line is removed on opening.
 */
export class Journal {
  #fd: number;
  #end = 0;
  #waiting: ((error: Error | null) => void)[] = [];
  #flushing = false;

  private constructor(fd: number) {
    this.#fd = fd;
  }

  /**
   * Opens or creates the file (mode 0600) and calls `each` for every whole line, in order.
   * @throws Error naming the offset of a line that is not JSON: a damaged journal is never used in part.
   */
  static open(file: string, each: (record: unknown, place: Place) => void): Journal {
    const journal = new Journal(openSync(file, 'a+', 0o600));
    try {
      journal.#end = scan(journal.#fd, (line, place) => each(parse(line, file, place.offset), place));
      if (fstatSync(journal.#fd).size > journal.#end) ftruncateSync(journal.#fd, journal.#end);
    } catch (error) {
      closeSync(journal.#fd);
      throw error;
    }
    return journal;
  }

  append(record: unknown): Place {
    const line = Buffer.from(`${JSON.stringify(record)}\n`);
    const place = { offset: this.#end, length: line.length - 1 };
    for (let done = 0; done < line.length;) done += writeSync(this.#fd, line, done);
    this.#end += line.length;
    return place;
  }

  read(place: Place): unknown {
    const line = Buffer.alloc(place.length);
    readSync(this.#fd, line, 0, place.length, place.offset);
    return JSON.parse(line.toString('utf8'));
  }

  /** Resolves when everything appended so far is on the disk. Calls made meanwhile share one flush. */
  durable(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push(error => (error ? reject(error) : resolve()));
      if (!this.#flushing) this.#flush();
    });
  }

  async close(): Promise<void> {
    await this.durable();
    closeSync(this.#fd);
  }

  /** Flushes everything appended and closes the file, synchronously. */
  closeNow(): void {
    fdatasyncSync(this.#fd);
    closeSync(this.#fd);
  }

  #flush(): void {
    this.#flushing = true;
    const served = this.#waiting;
    this.#waiting = [];
    fdatasync(this.#fd, error => {
      this.#flushing = false;
      for (const done of served) done(error);
      if (this.#waiting.length > 0 && !this.#flushing) this.#flush();
    });
  }
}

/** Calls `each` for every complete line and returns the end of the last one. */
function scan(fd: number, each: (line: string, place: Place) => void): number {
  let held: Buffer = Buffer.alloc(0);
  let start = 0;
  let position = 0;
  const chunk = Buffer.alloc(CHUNK);
  for (;;) {
    const count = readSync(fd, chunk, 0, CHUNK, position);
    if (count === 0) return start;
    position += count;
    held = Buffer.concat([held, chunk.subarray(0, count)]);
    let from = 0;
    for (let at = held.indexOf(NEWLINE); at >= 0; at = held.indexOf(NEWLINE, from)) {
      each(held.toString('utf8', from, at), { offset: start, length: at - from });
      start += at - from + 1;
      from = at + 1;
    }
    held = held.subarray(from);
    if (held.length > MAX_LINE)
      throw new Error(`The journal contains a line of more than ${MAX_LINE} bytes at byte ${start}.`);
  }
}

function parse(line: string, file: string, offset: number): unknown {
  try {
    return JSON.parse(line);
  } catch {
    throw new Error(
      `${file} is damaged at byte ${offset}: the local chain cannot be resumed. ` +
        'Restore the file, or delete the state folder to begin a new chain.',
    );
  }
}
