/** The edits that requests make to a brain's documents. */

import { Problem } from "../problem.js";
import { type NewDocument, writeSidecar } from "./source.js";
import type { Draft } from "./draft.js";

/** Changes a draft; it may be applied again, to a later draft. */
export type Edit = (draft: Draft) => void;

export type Op =
  | { type: "write" | "append"; path: string; content: Buffer }
  | { type: "delete"; path: string }
  | { type: "rename"; path: string; to: string };

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

/** The edit that applies ops in order. */
export function operationsEdit(ops: readonly Op[]): Edit {
  return (draft) => {
    for (const [i, op] of ops.entries()) {
      withLabel(`ops[${i}]`, () => {
        applyOp(draft, op);
      });
    }
  };
}

function applyOp(draft: Draft, op: Op): void {
  switch (op.type) {
    case "write":
      draft.write(op.path, op.content);
      break;
    case "append":
      draft.append(op.path, op.content);
      break;
    case "delete":
      draft.delete(op.path);
      break;
    case "rename":
      draft.rename(op.path, op.to);
  }
}

/** Run `step`; a Problem that it throws is prefixed with the part of the request it concerns. */
function withLabel(part: string, step: () => void): void {
  try {
    step();
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    throw new Problem(error.code, `${part}: ${error.detail}`);
  }
}
