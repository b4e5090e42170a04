/** Search results as clients see them. */

import { documentIdOf } from "../chunk.js";
import type { Search } from "../index/search.js";
import type { Hit } from "../rank/rank.js";

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
