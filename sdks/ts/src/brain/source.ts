/** Documents as they are indexed. */

import { chunk } from "../chunk.js";
import { parseFrontMatter } from "../frontmatter.js";
import type { IndexedDocument } from "../index/index.js";
import type { Sidecar } from "./sidecar.js";

// Keep a byte order mark: the chunks, concatenated, must equal the text.
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

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
