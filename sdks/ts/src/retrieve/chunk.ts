/** Search results as clients see them. */

import { documentIdOf } from "../chunk.js";
import type { Search } from "../index/search.js";
import type { Hit } from "../rank/rank.js";
import { compareUtf8 } from "../text/order.js";

export interface Chunk {
  chunkId: string;
  documentId: string;
  path: string;
  score: number;
  text: string;
  title?: string;
  metadata?: Record<string, unknown>;
}

export function chunksOf(search: Search, hits: Hit[]): Chunk[] {
  return hits.map(({ slot, score }) => {
    const { path, ordinal, text, title, metadata } = search.chunk(slot);
    const documentId = documentIdOf(path);
    return {
      chunkId: `${documentId}#${ordinal}`,
      documentId,
      path,
      score,
      text,
      ...(title !== undefined && { title }),
      ...(Object.keys(metadata).length > 0 && { metadata }),
    };
  });
}

/** The ranking order: best score, then path by its UTF-8 bytes, then ordinal. */
export function compareChunks(a: Chunk, b: Chunk): number {
  return b.score - a.score || compareUtf8(a.path, b.path) || ordinalOf(a) - ordinalOf(b);
}

function ordinalOf({ chunkId }: Chunk): number {
  return Number(chunkId.slice(chunkId.indexOf("#") + 1));
}
