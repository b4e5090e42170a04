/** What an index was made from, on disk: a file of records, each with its checksum. */

import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { crc32 } from "node:zlib";

import type { Filterable } from "./filter.js";
import { Pace } from "./pace.js";

const { O_CREAT, O_RDWR } = constants;

/** Incremented when the logs of older daemons can no longer be used. */
const FORMAT = 3;

/** A record begins with a mark, its checksum, and the sizes of its JSON and of its vectors. */
const MARK = Buffer.from("\0rec"); // no part of any JSON, which has no NUL
const SUM_AT = 4;
const SIZES_AT = 8;
const HEAD_BYTES = 16;

/** How many bytes are read at once. */
const WINDOW_BYTES = 2 ** 19;

/** Bytes of old records are dropped if they are most of all, and at least so many. */
export const LEAST_WASTE_BYTES = 2 ** 22;

/** A document as it is indexed. */
export interface DocumentRecord extends Filterable {
  readonly stamp: string;
  readonly title: string | undefined;
  /** JSON, which only search results decode. */
  readonly metadata: string;
  readonly chunks: readonly string[];
  /** One per chunk; none without an embedder. */
  readonly vectors: readonly Float32Array[];
}

/** A document that is indexed no longer. */
interface RemovalRecord {
  readonly path: string;
  readonly chunks?: undefined;
  readonly vectors?: undefined;
}

export type LogRecord = DocumentRecord | RemovalRecord;

/**
 * A write that a kill cuts off, and whatever else damages the file, costs the records that it touches;
 * they are indexed again from the files.
 */
export class Log {
  readonly #file: string;
  readonly #embedder: string;
  readonly #header: Buffer;
  #descriptor: number;
  #size = 0;
  #records = 0;
  /** The size of the last record of each document that is indexed, by path. */
  #sizes = new Map<string, number>();
  #liveBytes = 0;
  /** Bytes of other records, since the last attempt to rewrite the log. */
  #oldBytes = 0;
  #damaged = false;
  /** The log that is to replace this one, and what it lacks of the changes since it was begun. */
  #fresh: Log | undefined;
  #missing: LogRecord[] = [];

  /** Open the log of vectors of `embedder`, or begin one, also in place of one of another format. */
  constructor(file: string, embedder: string) {
    this.#file = file;
    this.#embedder = embedder;
    this.#header = Buffer.from(`memoryd-ts ${FORMAT} ${JSON.stringify(embedder)}\n`);
    this.#descriptor = openSync(file, O_RDWR | O_CREAT);
    try {
      const header = new Window(this.#descriptor).from(0, this.#header.length);
      if (header.subarray(0, this.#header.length).equals(this.#header)) {
        this.#size = fstatSync(this.#descriptor).size;
      } else {
        ftruncateSync(this.#descriptor);
        this.#write(this.#header);
      }
    } catch (error) {
      this.close();
      throw error;
    }
  }

  close(): void {
    this.#discardFresh();
    closeSync(this.#descriptor);
  }

  /** The intact records, to be read once, before others are appended. */
  *records(): Generator<LogRecord> {
    const window = new Window(this.#descriptor);
    for (let at = this.#header.length; at < this.#size;) {
      const size = sizeOf(window.from(at, HEAD_BYTES));
      const content = at + size <= this.#size ? window.from(at, size).subarray(0, size) : undefined;
      if (content !== undefined && isIntact(content)) {
        const record = decode(content);
        yield record;
        this.#count(record, size);
        at += size;
      } else {
        this.#damaged = true;
        at = window.indexOf(MARK, at + 1) ?? this.#size;
      }
    }
  }

  /** Add records, all or none. */
  append(records: readonly LogRecord[]): void {
    const encoded = records.map((record) => ({ record, parts: encode(record) }));
    // Once: a document may have some MiB.
    this.#write(Buffer.concat(encoded.flatMap(({ parts }) => parts)));
    for (const { record, parts } of encoded) {
      this.#count(
        record,
        parts.reduce((sum, { length }) => sum + length, 0),
      );
    }
    if (this.#fresh === undefined) return;
    // One by one: a call takes no more than some 100,000 arguments.
    for (const record of records) this.#missing.push(record);
  }

  /** Whether it is damaged, has more than `most` records or mostly old ones, and is not being rewritten. */
  shouldRewrite(most: number): boolean {
    const isWasteful = this.#oldBytes > this.#liveBytes + LEAST_WASTE_BYTES;
    return this.#fresh === undefined && (this.#damaged || isWasteful || this.#records > most);
  }

  /**
   * Replace the file by one with these records, while other requests are served, or leave it as it is and
   * throw. Changes are appended to both; closing the log ends it.
   */
  async rewrite(records: Iterable<DocumentRecord>): Promise<void> {
    // If this fails, as many changes as before make the next attempt.
    this.#records = 0;
    this.#oldBytes = 0;
    this.#damaged = false;
    rmSync(freshOf(this.#file), { force: true });
    const fresh = new Log(freshOf(this.#file), this.#embedder);
    this.#fresh = fresh;
    try {
      const pace = new Pace();
      for (const record of records) {
        fresh.append([record]);
        if (pace.isOver) await pace.rest();
        // Closed meanwhile.
        if (this.#fresh !== fresh) return;
      }
      fresh.append(this.#missing);
      renameSync(fresh.#file, this.#file);
    } catch (error) {
      this.#discardFresh();
      throw error;
    }
    this.#fresh = undefined;
    this.#missing = [];
    closeSync(this.#descriptor);
    this.#descriptor = fresh.#descriptor;
    this.#size = fresh.#size;
    this.#records = fresh.#records;
    this.#sizes = fresh.#sizes;
    this.#liveBytes = fresh.#liveBytes;
    this.#oldBytes = fresh.#oldBytes;
  }

  #count(record: LogRecord, size: number): void {
    this.#records++;
    const replaced = this.#sizes.get(record.path) ?? 0;
    this.#liveBytes -= replaced;
    this.#oldBytes += replaced;
    if (record.chunks === undefined) {
      this.#sizes.delete(record.path);
      this.#oldBytes += size;
    } else {
      this.#sizes.set(record.path, size);
      this.#liveBytes += size;
    }
  }

  #discardFresh(): void {
    const fresh = this.#fresh;
    if (fresh === undefined) return;
    this.#fresh = undefined;
    this.#missing = [];
    closeSync(fresh.#descriptor);
    rmSync(fresh.#file, { force: true });
  }

  /** What is left of a write that fails is overwritten by the next one, or found to be damaged. */
  #write(content: Buffer): void {
    const { length } = content;
    try {
      // A disk that is almost full takes a part.
      if (writeSync(this.#descriptor, content, 0, length, this.#size) !== length) {
        throw new Error("the log of the index cannot be written");
      }
    } catch (error) {
      ftruncateSync(this.#descriptor, this.#size);
      throw error;
    }
    this.#size += length;
  }
}

/** Remove the log of an index, which is closed. */
export function removeLog(file: string): void {
  for (const name of [file, freshOf(file)]) rmSync(name, { force: true });
}

function freshOf(file: string): string {
  return `${file}.new`;
}

/** Reads a file in large pieces. */
class Window {
  readonly #descriptor: number;
  #piece = Buffer.alloc(0);
  #start = 0;

  constructor(descriptor: number) {
    this.#descriptor = descriptor;
  }

  /** The bytes from a place on, at least `length` of them unless the file ends. */
  from(at: number, length: number): Buffer {
    const end = this.#start + this.#piece.length;
    if (at < this.#start || at + length > end) {
      const piece = Buffer.allocUnsafe(Math.max(length, WINDOW_BYTES));
      this.#piece = piece.subarray(0, readSync(this.#descriptor, piece, 0, piece.length, at));
      this.#start = at;
    }
    return this.#piece.subarray(at - this.#start);
  }

  /** Where the bytes `wanted` are next, from a place on. */
  indexOf(wanted: Buffer, start: number): number | undefined {
    for (let at = start; ;) {
      const piece = this.from(at, wanted.length);
      const found = piece.indexOf(wanted);
      if (found >= 0) return at + found;
      if (piece.length < wanted.length) return undefined;
      at += piece.length - wanted.length + 1;
    }
  }
}

/** The parts of a record. */
function encode({ vectors = [], ...record }: LogRecord): Uint8Array[] {
  const json = Buffer.from(JSON.stringify(record));
  const values = vectors.map(
    ({ buffer, byteOffset, byteLength }) => new Uint8Array(buffer, byteOffset, byteLength),
  );
  const head = Buffer.alloc(HEAD_BYTES);
  MARK.copy(head);
  head.writeUInt32LE(json.length, SIZES_AT);
  head.writeUInt32LE(
    values.reduce((sum, { length }) => sum + length, 0),
    SIZES_AT + 4,
  );
  const summed = [head.subarray(SIZES_AT), json, ...values];
  head.writeUInt32LE(
    summed.reduce((sum, part) => crc32(part, sum), 0),
    SUM_AT,
  );
  return [head, json, ...values];
}

/** The size of the record that begins here; NaN if it is cut off. */
function sizeOf(head: Buffer): number {
  if (head.length < HEAD_BYTES) return NaN;
  return HEAD_BYTES + head.readUInt32LE(SIZES_AT) + head.readUInt32LE(SIZES_AT + 4);
}

function isIntact(content: Buffer): boolean {
  return (
    content.subarray(0, SUM_AT).equals(MARK) &&
    content.readUInt32LE(SUM_AT) === crc32(content.subarray(SIZES_AT))
  );
}

function decode(content: Buffer): LogRecord {
  const valuesAt = HEAD_BYTES + content.readUInt32LE(SIZES_AT);
  const json = content.toString("utf8", HEAD_BYTES, valuesAt);
  const record = JSON.parse(json) as Omit<DocumentRecord, "vectors"> | RemovalRecord;
  if (record.chunks === undefined) return record;
  // Copied, because float32 values must be aligned.
  const values = new Float32Array(new Uint8Array(content.subarray(valuesAt)).buffer);
  const dimensions = values.length / record.chunks.length;
  const vectors = record.chunks
    .map((_, ordinal) => values.subarray(ordinal * dimensions, (ordinal + 1) * dimensions))
    .filter(({ length }) => length > 0);
  return { ...record, vectors };
}
