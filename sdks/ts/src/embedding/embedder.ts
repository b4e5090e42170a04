export interface Embedder {
  /** Part of an index's identity: an index made by another embedder is built anew. */
  readonly name: string;

  /**
   * One vector of length 1 a text, all of the same dimensions; the zero vector where there is nothing
   * to embed.
   *
   * @throws Problem `bad_gateway` or `timeout` where a service fails.
   */
  embed(texts: readonly string[], signal: AbortSignal): Promise<Float32Array[]>;
}

/** Scaled to length 1 in float64, kept as float32. */
export function normalized(values: readonly number[]): Float32Array {
  let squares = 0;
  for (const value of values) squares += value * value;
  const norm = Math.sqrt(squares);
  return Float32Array.from(values, (value) => (norm === 0 ? 0 : value / norm));
}
