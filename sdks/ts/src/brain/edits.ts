/** What requests want done to a brain's documents. */

import { Problem } from "../problem.js";
import { type NewDocument, writeSidecar } from "./document.js";
import type { Draft } from "./draft.js";

/** It may be made again, to a later draft. */
export type Edit = (draft: Draft) => void;

export type Op =
  | { type: "write" | "append"; path: string; content: Buffer }
  | { type: "delete"; path: string }
  | { type: "rename"; path: string; to: string };

export function ingestionOf(document: NewDocument): Edit {
  return (draft) => {
    draft.write(document.path, document.content, writeSidecar(document));
  };
}

/** Of a path that stands there twice the last counts, and it is one change. */
export function ingestion(documents: readonly NewDocument[]): Edit {
  const last = new Map<string, { document: (typeof documents)[number]; i: number }>();
  for (const [i, document] of documents.entries()) {
    // Taken out first: a map keeps the place of a key that it has, and the last one is what counts.
    last.delete(document.path);
    last.set(document.path, { document, i });
  }
  return (draft) => {
    for (const { document, i } of last.values()) {
      named(`documents[${i}]`, () => {
        ingestionOf(document)(draft);
      });
    }
  };
}

export function operations(ops: readonly Op[]): Edit {
  return (draft) => {
    for (const [i, op] of ops.entries()) {
      named(`ops[${i}]`, () => {
        operate(draft, op);
      });
    }
  };
}

function operate(draft: Draft, op: Op): void {
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

/** Says of a refusal which part of the request it is about. */
function named(part: string, step: () => void): void {
  try {
    step();
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    throw new Problem(error.code, `${part}: ${error.detail}`);
  }
}
