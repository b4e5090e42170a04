/** Reading and validating request bodies: size, then JSON, then the schema. */

import { isUtf8 } from "node:buffer";
import type { Readable } from "node:stream";

import { z } from "zod";

import { invalid, Problem } from "../problem.js";
import { DEPTH_LIMIT } from "../wire/check.js";
import { hasNumber, parseExactly } from "../wire/exactJson.js";

/** 8 MiB of content are 11.2 MiB in base64; the rest leaves room for titles, tags and metadata. */
const BODY_LIMIT = 16 * 2 ** 20;

/** Bytes of decoded content in one ingest or batch. */
const DECODED_LIMIT = 8 * 2 ** 20;

/** How much of a body is read and discarded, so that a client that is still sending sees the 413. */
const DRAIN_LIMIT = 4 * BODY_LIMIT;

const FIRST_BYTES = 2 ** 12;

/**
 * Read a body completely.
 *
 * @throws Problem `payload_too_large` over 16 MiB, `validation_error` if the connection is cut.
 */
export async function readBody(stream: Readable): Promise<Buffer> {
  let body: Buffer = Buffer.alloc(FIRST_BYTES);
  let size = 0;
  try {
    for await (const piece of stream as AsyncIterable<Buffer>) {
      const start = size;
      size += piece.length;
      // Copied: a piece of one byte, of which a body may have millions, takes some hundred.
      if (size <= BODY_LIMIT) {
        if (size > body.length) body = enlarge(body, start, size);
        piece.copy(body, start);
      } else {
        body = Buffer.alloc(0);
      }
      if (size > DRAIN_LIMIT) break;
    }
  } catch (error) {
    throw new Problem("validation_error", "the request ended before its body was complete", {
      cause: error,
    });
  }
  if (size > BODY_LIMIT) {
    throw new Problem("payload_too_large", `the body has more than ${BODY_LIMIT} bytes`);
  }
  return body.subarray(0, size);
}

/** A buffer of at least `size` bytes that begins with the `used` bytes of `body`. */
function enlarge(body: Buffer, used: number, size: number): Buffer {
  const larger = Buffer.alloc(Math.max(size, 2 * body.length));
  body.copy(larger, 0, 0, used);
  return larger;
}

/** The bytes that `readBody` read; empty for a request without a body. */
export function bytesOf(body: unknown): Buffer {
  return Buffer.isBuffer(body) ? body : Buffer.alloc(0);
}

/** @throws Problem `payload_too_large` if `contents` exceed 8 MiB in total. */
export function requireContentLimit(contents: readonly Buffer[]): void {
  const size = contents.reduce((sum, { length }) => sum + length, 0);
  if (size > DECODED_LIMIT) {
    throw new Problem("payload_too_large", `the content has more than ${DECODED_LIMIT} bytes`);
  }
}

/**
 * Parse a JSON body and validate it against `schema`.
 *
 * @throws Problem `validation_error` that names the first invalid key.
 */
export function parseBody<T>(schema: z.ZodType<T>, body: unknown): T {
  const parsed = schema.safeParse(parseJson(body));
  if (parsed.success) return parsed.data;
  throw invalid(describeIssue(parsed.error));
}

function parseJson(body: unknown): unknown {
  const bytes = bytesOf(body);
  if (!isUtf8(bytes)) throw invalid("the body is not valid UTF-8");
  const text = bytes.toString();
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) throw invalid("the body is not valid JSON");
    throw error;
  }
  requireStorable(value);
  makeMetadataExact(value, text);
  return value;
}

/** Replace numbers in the metadata of an ingest by those that `text` has. */
function makeMetadataExact(value: unknown, text: string): void {
  const documents = documentsOf(value);
  if (!documents.some(({ metadata }) => hasNumber(metadata))) return;
  for (const [index, exact] of documentsOf(parseExactly(text)).entries()) {
    const document = documents[index];
    if (document !== undefined) document.metadata = exact.metadata;
  }
}

/** The objects of an ingest that may have metadata: the body, and those in `documents`. */
function documentsOf(body: unknown): { metadata?: unknown }[] {
  const inBatch: unknown =
    typeof body === "object" && body !== null && "documents" in body ? body.documents : [];
  const items: unknown[] = [body].concat(Array.isArray(inBatch) ? inBatch : []);
  return items.filter((item) => typeof item === "object" && item !== null);
}

/** Reject what JSON allows but a response cannot carry: lone surrogates and excessive nesting. */
function requireStorable(root: unknown): void {
  const pending: { value: unknown; depth: number }[] = [{ value: root, depth: 0 }];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { value, depth } = next;
    if (typeof value === "string" && !value.isWellFormed()) {
      throw invalid("the body contains a lone surrogate");
    }
    if (typeof value !== "object" || value === null) continue;
    if (depth === DEPTH_LIMIT)
      throw invalid(`the body is nested more than ${DEPTH_LIMIT} levels deep`);
    for (const [key, child] of Object.entries(value)) {
      pending.push({ value: key, depth: depth + 1 }, { value: child, depth: depth + 1 });
    }
  }
}

/** The first issue, as `documents[3].path: …`. */
function describeIssue(error: z.ZodError): string {
  const [issue] = error.issues;
  if (issue === undefined) return "the body is invalid";
  const where = z.core.toDotPath(issue.path);
  return where === "" ? issue.message : `${where}: ${issue.message}`;
}
