/** Documents as they are indexed. */

import { isUtf8 } from "node:buffer";

import { chunk } from "../chunk.js";
import { parseFrontMatter } from "../frontmatter.js";
import type { IndexedDocument } from "../index/index.js";
import { readSidecar } from "./sidecar.js";

/** A document whose files may not be in place yet, and whose chunks are not embedded yet. */
export type UnstampedDocument = Omit<IndexedDocument, "stamp" | "vectors">;

/** The document as it is indexed; bytes that are not UTF-8 have no text. */
export function toIndexedDocument(
  path: string,
  content: Buffer,
  sidecar: Buffer | undefined,
): UnstampedDocument {
  // With its byte order mark: the chunks, concatenated, must equal the text.
  const { text, metadata } = parseFrontMatter(isUtf8(content) ? content.toString() : "");
  const given = readSidecar(sidecar);
  const title = given.title ?? metadata.title;
  const tags = given.tags ?? metadata.tags;
  return {
    path,
    title: typeof title === "string" ? title : undefined,
    tags: Array.isArray(tags) ? tags : [],
    metadata: { ...metadata, ...given.metadata },
    chunks: chunk(text),
  };
}
