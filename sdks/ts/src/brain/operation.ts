/** The edits that requests make to a brain's documents. */

import { Problem } from "../problem.js";
import type { Draft } from "./draft.js";

/** Changes a draft; it may be applied again, to a later draft. */
export type Edit = (draft: Draft) => void;

export type Operation =
  | { type: "write" | "append"; path: string; content: Buffer }
  | { type: "delete"; path: string }
  | { type: "rename"; path: string; to: string };

/** The edit that applies ops in order. */
export function operationsEdit(ops: readonly Operation[]): Edit {
  return (draft) => {
    for (const [i, op] of ops.entries()) {
      withLabel(`ops[${i}]`, () => {
        operationEdit(op)(draft);
      });
    }
  };
}

export function operationEdit(op: Operation): Edit {
  return (draft) => {
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
  };
}

/** Run `step`; a Problem that it throws is prefixed with the part of the request it concerns. */
export function withLabel(part: string, step: () => void): void {
  try {
    step();
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    throw new Problem(error.code, `${part}: ${error.detail}`);
  }
}
