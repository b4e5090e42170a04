/** Documents as they are ingested, stored on disk, and indexed. */

import { z } from "zod";

import type { IndexedDocument } from "../index/index.js";
import { chunk } from "../chunk.js";
import { isFinite, parseExactly, stringifyExactly } from "../wire/exactJson.js";
import { parseFrontMatter } from "../frontmatter.js";
import { DEPTH_LIMIT, isNestedOver } from "../wire/check.js";

/** What an ingest sends besides the content. */
export interface Sidecar {
  contentType: string;
  title?: string | undefined;
  tags?: string[] | undefined;
  metadata?: Record<string, unknown> | undefined;
}

export interface NewDocument extends Sidecar {
  path: string;
  content: Buffer;
}

/** Anybody may have written the file: an invalid value counts as absent. */
const STORED_SIDECAR = z
  .object({
    title: z.string().optional().catch(undefined),
    tags: z.array(z.string()).optional().catch(undefined),
    metadata: z
      .custom<Record<string, unknown>>(
        (value) =>
          typeof value === "object" &&
          value !== null &&
          !Array.isArray(value) &&
          !isNestedOver(DEPTH_LIMIT, value) &&
          isFinite(value),
      )
      .optional()
      .catch(undefined),
  })
  .catch({});

// Keep a byte order mark: the chunks, concatenated, must equal the text.
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Encode a sidecar as JSON. */
export function writeSidecar(document: Sidecar): Buffer {
  const { contentType, title, tags, metadata } = document;
  return Buffer.from(stringifyExactly({ contentType, title, tags, metadata }));
}

/** Decode a sidecar; a missing or malformed one is empty. */
export function readSidecar(bytes: Buffer | undefined): Omit<Sidecar, "contentType"> {
  try {
    return STORED_SIDECAR.parse(parseExactly(bytes?.toString() ?? "{}"));
  } catch (error) {
    // A RangeError: it is nested so deep that the parser's stack does not suffice.
    if (error instanceof SyntaxError || error instanceof RangeError) return {};
    throw error;
  }
}

/** The document as it is indexed, without its stamp and vectors. */
export function toIndexedDocument(
  path: string,
  content: Uint8Array,
  sidecar: Omit<Sidecar, "contentType">,
): Omit<IndexedDocument, "stamp" | "vectors"> {
  const { text, metadata } = parseFrontMatter(decodeText(content));
  const title = sidecar.title ?? metadata.title;
  const tags = sidecar.tags ?? metadata.tags;
  return {
    path,
    title: typeof title === "string" ? title : undefined,
    tags: Array.isArray(tags) ? tags : [],
    metadata: { ...metadata, ...sidecar.metadata },
    chunks: chunk(text),
  };
}

/** The text of a document; bytes that are not UTF-8 have none. */
function decodeText(content: Uint8Array): string {
  try {
    return UTF8.decode(content);
  } catch (error) {
    if (error instanceof TypeError) return "";
    throw error;
  }
}
