export interface Embedder {
  /** Identifies the vectors: an index made with an embedder of another name is rebuilt. */
  readonly name: string;

  /** The name of the model, whichever service has it. */
  readonly model: string;

  /**
   * One vector of length 1 per text, all of the same dimensions; the zero vector if a text has nothing
   * to embed.
   *
   * @throws Problem `bad_gateway` or `timeout` if the service fails; or the reason of `signal`.
   */
  embed(texts: readonly string[], signal: AbortSignal): Promise<Float32Array[]>;
}

/** Scale to length 1 in float64, then convert to float32. */
export function normalize(values: readonly number[]): Float32Array {
  let squares = 0;
  for (const value of values) squares += value * value;
  const norm = Math.sqrt(squares);
  const vector = new Float32Array(values.length);
  // Not `Float32Array.from`, which takes ten times as long for a function.
  if (norm > 0) values.forEach((value, i) => (vector[i] = value / norm));
  return vector;
}
