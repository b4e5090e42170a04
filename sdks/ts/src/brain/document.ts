/** Documents: what an ingest gives, what lies on disk, and what of it is indexed. */

import { z } from "zod";

import type { IndexedDocument } from "../index/searchIndex.js";
import { chunk } from "../text/chunking.js";
import { parseFrontMatter } from "../text/frontMatter.js";
import { DEPTH_LIMIT, isNestedOver } from "../text/nesting.js";

/** What an ingest gives beside the content. */
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

/** Anybody may have written the file: what does not fit in it counts as absent. */
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
          !isNestedOver(DEPTH_LIMIT, value),
      )
      .optional()
      .catch(undefined),
  })
  .catch({});

// A byte order mark is text like any other: chunks joined are the text.
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export function writeSidecar(document: Sidecar): Buffer {
  const { contentType, title, tags, metadata } = document;
  return Buffer.from(JSON.stringify({ contentType, title, tags, metadata }));
}

/** What stands in a document's sidecar; nothing where it has none. */
export function readSidecar(bytes: Buffer | undefined): Omit<Sidecar, "contentType"> {
  try {
    return STORED_SIDECAR.parse(JSON.parse(bytes?.toString() ?? "{}"));
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}

/** The document as the index takes it, without its stamp and vectors. */
export function indexed(
  path: string,
  content: Uint8Array,
  sidecar: Omit<Sidecar, "contentType">,
): Omit<IndexedDocument, "stamp" | "vectors"> {
  const { text, metadata } = parseFrontMatter(decoded(content));
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

/** Bytes that are no UTF-8 have no text. */
function decoded(content: Uint8Array): string {
  try {
    return UTF8.decode(content);
  } catch (error) {
    if (error instanceof TypeError) return "";
    throw error;
  }
}
