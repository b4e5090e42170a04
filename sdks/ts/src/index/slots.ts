/** What the filters look at. */
export interface Filterable {
  readonly path: string;
  readonly tags: readonly string[];
  readonly sessionId: string | undefined;
}

/** A chunk that can be found: one of a document's. */
export interface Occupant {
  readonly document: Filterable;
  readonly ordinal: number;
}

/**
 * Who lives in which slot. A slot is a small integer: a chunk's place in the vector matrix and, plus
 * one, its rowid in SQLite. Freed slots are used again, so the matrix stays dense.
 */
export class Slots {
  readonly #occupants: (Occupant | undefined)[] = [];
  readonly #free: number[] = [];

  get used(): number {
    return this.#occupants.length - this.#free.length;
  }

  take(occupant: Occupant): number {
    const slot = this.#free.pop() ?? this.#occupants.length;
    this.#occupants[slot] = occupant;
    return slot;
  }

  /** Puts an occupant where it was before; slots must come in rising order. */
  restore(slot: number, occupant: Occupant): void {
    while (this.#occupants.length < slot) {
      this.#free.push(this.#occupants.length);
      this.#occupants.push(undefined);
    }
    this.#occupants.push(occupant);
  }

  release(slot: number): void {
    this.#occupants[slot] = undefined;
    this.#free.push(slot);
  }

  clear(): void {
    this.#occupants.length = 0;
    this.#free.length = 0;
  }

  at(slot: number): Occupant {
    const occupant = this.#occupants[slot];
    if (occupant === undefined) throw new RangeError(`slot ${slot} holds no chunk`);
    return occupant;
  }

  /** No generator: one took 0.4 ms over 10,000 slots, a third of a search; this takes 0.02 ms. */
  forEach(visit: (slot: number, occupant: Occupant) => void): void {
    this.#occupants.forEach((occupant, slot) => {
      if (occupant !== undefined) visit(slot, occupant);
    });
  }
}
