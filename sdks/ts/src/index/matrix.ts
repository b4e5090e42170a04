/**
 * How many vectors are interleaved in a block: first the first dimension of each, then the second of
 * each. An addition depends on the previous one of its own lane only. Over 100,000 vectors of 384
 * dimensions that takes 26 ms, against 40 ms for four vectors in sequence and 70 ms one by one.
 */
const LANES = 4;

/** The vectors of one brain by slot, in one contiguous array, for exact search. */
export class VectorMatrix {
  #values = new Float32Array(0);
  #dimensions: number | undefined;

  /** Undefined while the matrix is empty. */
  get dimensions(): number | undefined {
    return this.#dimensions;
  }

  put(slot: number, vector: Float32Array): void {
    this.#dimensions ??= vector.length;
    const block = LANES * this.#dimensions;
    const start = Math.floor(slot / LANES) * block;
    if (start + block > this.#values.length) {
      const grown = new Float32Array(Math.max(start + block, 2 * this.#values.length));
      grown.set(this.#values);
      this.#values = grown;
    }
    const lane = slot % LANES;
    for (const [i, value] of vector.entries()) this.#values[start + LANES * i + lane] = value;
  }

  /** Remove all vectors, and forget the number of dimensions. */
  clear(): void {
    this.#values = new Float32Array(0);
    this.#dimensions = undefined;
  }

  /**
   * The dot product of `query` with each slot's vector, summed in float64 and in the order of the
   * dimensions, as the contract requires. Fastest if slots are in ascending order.
   */
  dots(query: Float32Array, slots: readonly number[]): Float64Array {
    const weights = Float64Array.from(query);
    const sums = new Float64Array(slots.length);
    const laneSums = new Float64Array(LANES);
    let currentBlock = -1;
    slots.forEach((slot, place) => {
      const block = Math.floor(slot / LANES);
      if (block !== currentBlock)
        sumBlock(this.#values, block * LANES * weights.length, weights, laneSums);
      currentBlock = block;
      sums[place] = laneSums[slot % LANES] ?? 0;
    });
    return sums;
  }
}

/* eslint-disable @typescript-eslint/no-non-null-assertion -- inside by construction, and the hottest loop */

/** The sums of the four vectors whose block begins at `start`. */
function sumBlock(
  values: Float32Array,
  start: number,
  weights: Float64Array,
  sums: Float64Array,
): void {
  let sum0 = 0;
  let sum1 = 0;
  let sum2 = 0;
  let sum3 = 0;
  let at = start;
  // By index: an iterator over a typed array takes twice the time.
  const dimensions = weights.length;
  for (let i = 0; i < dimensions; i++) {
    const weight = weights[i]!;
    sum0 += weight * values[at]!;
    sum1 += weight * values[at + 1]!;
    sum2 += weight * values[at + 2]!;
    sum3 += weight * values[at + 3]!;
    at += LANES;
  }
  sums[0] = sum0;
  sums[1] = sum1;
  sums[2] = sum2;
  sums[3] = sum3;
}
