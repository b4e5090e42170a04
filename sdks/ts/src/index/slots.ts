/** The fields of a document that filters use. */
export interface Filterable {
  readonly path: string;
  readonly tags: readonly string[];
  readonly sessionId: string | undefined;
}

/** A searchable chunk: its document and its ordinal in it. */
export interface SlotEntry {
  readonly document: Filterable;
  readonly ordinal: number;
}

/**
 * The chunk in each slot. A slot is a small integer: the chunk's position in the vector matrix and, plus
 * one, its rowid in SQLite. Freed slots are reused, so the matrix stays dense.
 */
export class Slots {
  readonly #entries: (SlotEntry | undefined)[] = [];
  readonly #free: number[] = [];

  get used(): number {
    return this.#entries.length - this.#free.length;
  }

  /** Assign a free slot to a chunk. */
  take(entry: SlotEntry): number {
    const slot = this.#free.pop() ?? this.#entries.length;
    this.#entries[slot] = entry;
    return slot;
  }

  /** Put a chunk back into its slot; slots must be restored in ascending order. */
  restore(slot: number, entry: SlotEntry): void {
    while (this.#entries.length < slot) {
      this.#free.push(this.#entries.length);
      this.#entries.push(undefined);
    }
    this.#entries.push(entry);
  }

  release(slot: number): void {
    this.#entries[slot] = undefined;
    this.#free.push(slot);
  }

  clear(): void {
    this.#entries.length = 0;
    this.#free.length = 0;
  }

  /** @throws RangeError if the slot is free. */
  at(slot: number): SlotEntry {
    const entry = this.#entries[slot];
    if (entry === undefined) throw new RangeError(`slot ${slot} holds no chunk`);
    return entry;
  }

  /** Not a generator: one took 0.4 ms over 10,000 slots, a third of a search; this takes 0.02 ms. */
  forEach(visit: (slot: number, entry: SlotEntry) => void): void {
    this.#entries.forEach((entry, slot) => {
      if (entry !== undefined) visit(slot, entry);
    });
  }
}
