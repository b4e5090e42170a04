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
   * The dot product of `query` with each slot's vector, summed in float64 and in the order of the
   * dimensions, as the contract asks.
   */
  dots(query: Float32Array, slots: readonly number[]): Float64Array {
    const sums = new Float64Array(slots.length);
    addUpInFours(this.#values, Float64Array.from(query), slots, sums);
    return sums;
  }
}

/* eslint-disable @typescript-eslint/no-non-null-assertion -- inside by construction, and the hottest loop */

/**
 * An addition waits for the one before it; those of four rows do not wait for each other. Over
 * 100,000 vectors of 384 that is 40 ms instead of 70.
 */
function addUpInFours(
  values: Float32Array,
  weights: Float64Array,
  slots: readonly number[],
  sums: Float64Array,
): void {
  const dimensions = weights.length;
  const last = slots.length - 1;
  for (let first = 0; first <= last; first += 4) {
    // Behind the last slot it is taken again; where its sum would go then there is no place.
    const a = slots[first]! * dimensions;
    const b = slots[Math.min(first + 1, last)]! * dimensions;
    const c = slots[Math.min(first + 2, last)]! * dimensions;
    const d = slots[Math.min(first + 3, last)]! * dimensions;
    let sumA = 0;
    let sumB = 0;
    let sumC = 0;
    let sumD = 0;
    for (let i = 0; i < dimensions; i++) {
      const weight = weights[i]!;
      sumA += weight * values[a + i]!;
      sumB += weight * values[b + i]!;
      sumC += weight * values[c + i]!;
      sumD += weight * values[d + i]!;
    }
    sums[first] = sumA;
    sums[first + 1] = sumB;
    sums[first + 2] = sumC;
    sums[first + 3] = sumD;
  }
}
