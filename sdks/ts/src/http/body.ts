/** Reading a request's body: all of it up to a limit, then JSON, then the shape that is wanted. */

import type { Readable } from "node:stream";

import { z } from "zod";

import { invalid, Problem } from "../problem.js";
import { DEPTH_LIMIT } from "../text/nesting.js";

/** Base64 makes 8 MiB of content 11.2 MiB; the rest is room for titles, tags and metadata. */
const BODY_LIMIT = 16 * 2 ** 20;

/** Bytes of content that one ingest or batch may carry. */
const DECODED_LIMIT = 8 * 2 ** 20;

/** Read and thrown away, so that a client that still sends gets to see the 413. */
const DRAIN_LIMIT = 4 * BODY_LIMIT;

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export async function readBody(stream: Readable): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let size = 0;
  try {
    for await (const piece of stream as AsyncIterable<Buffer>) {
      size += piece.length;
      if (size <= BODY_LIMIT) pieces.push(piece);
      else pieces.length = 0;
      if (size > DRAIN_LIMIT) break;
    }
  } catch (error) {
    throw new Problem("validation_error", "the request was cut", { cause: error });
  }
  if (size > BODY_LIMIT) {
    throw new Problem("payload_too_large", `more than ${BODY_LIMIT} bytes of body`);
  }
  return Buffer.concat(pieces, size);
}

/** What `readBody` gave; a request without a body has none that was read. */
export function bytesOf(body: unknown): Buffer {
  return Buffer.isBuffer(body) ? body : Buffer.alloc(0);
}

/** @throws Problem `payload_too_large` */
export function refuseMuch(contents: readonly Buffer[]): void {
  const size = contents.reduce((sum, { length }) => sum + length, 0);
  if (size > DECODED_LIMIT) {
    throw new Problem("payload_too_large", `more than ${DECODED_LIMIT} bytes of content`);
  }
}

/** @throws Problem `validation_error` that names the first key that is wrong. */
export function parseBody<T>(schema: z.ZodType<T>, body: unknown): T {
  const parsed = schema.safeParse(parseJson(body));
  if (parsed.success) return parsed.data;
  throw invalid(described(parsed.error));
}

function parseJson(body: unknown): unknown {
  let value: unknown;
  try {
    value = JSON.parse(UTF8.decode(bytesOf(body)));
  } catch (error) {
    if (error instanceof SyntaxError) throw invalid("the body is no JSON");
    if (error instanceof TypeError) throw invalid("the body is no UTF-8");
    throw error;
  }
  refuseUncarriable(value);
  return value;
}

/** Lone surrogates, which JSON can escape, and no UTF-8 could carry back; nesting without end. */
function refuseUncarriable(root: unknown): void {
  const pending: { value: unknown; depth: number }[] = [{ value: root, depth: 0 }];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { value, depth } = next;
    if (typeof value === "string" && !value.isWellFormed()) {
      throw invalid("the body holds a lone surrogate");
    }
    if (typeof value !== "object" || value === null) continue;
    if (depth === DEPTH_LIMIT) throw invalid(`the body is nested over ${DEPTH_LIMIT} deep`);
    for (const [key, child] of Object.entries(value)) {
      pending.push({ value: key, depth: depth + 1 }, { value: child, depth: depth + 1 });
    }
  }
}

/** The first fault, as `documents[3].path: …`. */
function described(error: z.ZodError): string {
  const [issue] = error.issues;
  if (issue === undefined) return "the body is not as it should be";
  const where = issue.path
    .map((part) => (typeof part === "number" ? `[${part}]` : `.${String(part)}`))
    .join("")
    .replace(/^\./, "");
  return where === "" ? issue.message : `${where}: ${issue.message}`;
}
