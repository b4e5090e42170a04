/** What is in the slots of an index. */

import type { DocumentRecord } from "./log.js";

/** What a document's metadata says about its chunks as turns. */
export interface Turn {
  /** Empty if they are none. */
  readonly session: string;
  /** Infinity without a number: those come last. */
  readonly index: number;
  readonly speaker: string;
}

export interface StoredDocument extends Omit<DocumentRecord, "vectors"> {
  /** The slot of the first chunk; the others follow. */
  readonly firstSlot: number;
  readonly turn: Turn;
}

/** The document of the chunk in each slot; undefined if it is gone. */
export type Slots = readonly (StoredDocument | undefined)[];
