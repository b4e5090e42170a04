/** The edits that ingest documents. */

import { type Edit, withLabel } from "./operation.js";
import { type Sidecar, writeSidecar } from "./sidecar.js";

export interface NewDocument extends Sidecar {
  path: string;
  content: Buffer;
}

/** The edit that stores one document. */
export function ingestEdit(document: NewDocument): Edit {
  return (draft) => {
    draft.write(document.path, document.content, writeSidecar(document));
  };
}

/** The edit that stores a batch. If a path occurs twice, the last document wins, as one change. */
export function batchIngestEdit(documents: readonly NewDocument[]): Edit {
  const last = new Map<string, { document: (typeof documents)[number]; i: number }>();
  for (const [i, document] of documents.entries()) {
    // Delete first: setting an existing key would keep its old position in the map.
    last.delete(document.path);
    last.set(document.path, { document, i });
  }
  return (draft) => {
    for (const { document, i } of last.values()) {
      withLabel(`documents[${i}]`, () => {
        ingestEdit(document)(draft);
      });
    }
  };
}
