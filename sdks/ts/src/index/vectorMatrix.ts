/** The vectors of one brain by slot, in one block of memory, compared exactly. */
export class VectorMatrix {
  #values = new Float32Array(0);
  #dimensions: number | undefined;

  /** Undefined until the first vector came. */
  get dimensions(): number | undefined {
    return this.#dimensions;
  }

  put(slot: number, vector: Float32Array): void {
    this.#dimensions ??= vector.length;
    const start = slot * this.#dimensions;
    const end = start + this.#dimensions;
    if (end > this.#values.length) {
      const grown = new Float32Array(Math.max(end, 2 * this.#values.length));
      grown.set(this.#values);
      this.#values = grown;
    }
    this.#values.set(vector, start);
  }

  /** Forgets everything, the number of dimensions too. */
  clear(): void {
    this.#values = new Float32Array(0);
    this.#dimensions = undefined;
  }

  /**
   * The dot product of `query` with a slot's vector, summed in float64 and in the order of the
   * dimensions, as the contract asks. Zeros of the query are left out: they change no sum, and the
   * feature hash of a question has little else.
   */
  comparer(query: Float32Array): (slot: number) => number {
    const values = this.#values;
    const dimensions = query.length;
    const used: number[] = [];
    query.forEach((value, index) => {
      if (value !== 0) used.push(index);
    });
    const indices = Int32Array.from(used);
    const weights = Float64Array.from(used, (index) => query[index] ?? 0);
    return (slot) => {
      const start = slot * dimensions;
      let sum = 0;
      for (let i = 0; i < indices.length; i++) {
        // eslint-disable-next-line @typescript-eslint/no-non-null-assertion -- inside by construction, and the hottest loop
        sum += weights[i]! * values[start + indices[i]!]!;
      }
      return sum;
    };
  }
}
