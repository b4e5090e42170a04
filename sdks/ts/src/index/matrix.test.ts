import assert from "node:assert/strict";
import { test } from "node:test";

import { VectorMatrix } from "./matrix.js";

/** As the contract says it: in float64, dimension after dimension. */
function dot(a: Float32Array, b: Float32Array): number {
  return a.reduce((sum, value, index) => sum + value * (b[index] ?? 0), 0);
}

test("dot products are summed in the order of the dimensions", () => {
  for (const dimensions of [1, 3, 384]) {
    const vectors = Array.from({ length: 300 }, () =>
      Float32Array.from({ length: dimensions }, () => Math.random() - 0.5),
    );
    const matrix = new VectorMatrix();
    for (const [slot, vector] of vectors.entries()) matrix.put(slot, vector);
    const query = Float32Array.from({ length: dimensions }, (_, i) =>
      i % 3 === 1 ? 0 : Math.random(),
    );
    for (let count = 0; count <= 11; count++) {
      const slots = [3, 1, 4, 10, 255, 256, 299, 5, 9, 2, 6].slice(0, count);
      const expected = slots.map((slot) => dot(query, vectors[slot] ?? new Float32Array(0)));
      assert.deepEqual([...matrix.dotsWith(query)(slots)], expected);
    }
  }
});
