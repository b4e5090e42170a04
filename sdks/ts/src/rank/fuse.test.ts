import assert from "node:assert/strict";
import { test } from "node:test";

import { sharedVectors } from "../testing/vectors.js";
import { fuseMinMax, fuseReciprocal } from "./fuse.js";

type Leg = [chunk: string, score: number][];
type Fusion = { fusion: "minmax"; alpha: number } | { fusion: "rrf"; k: number };

const vectors = sharedVectors("fusion") as {
  cases: ({ keyword: Leg; vector: Leg; fused: Leg } & Fusion)[];
};

for (const [number, fusion] of vectors.cases.entries()) {
  test(`fusion ${number}, ${fusion.fusion}`, () => {
    const names = [...new Set([...fusion.keyword, ...fusion.vector].map(([name]) => name))].sort();
    const hits = (leg: Leg) => leg.map(([name, score]) => ({ slot: names.indexOf(name), score }));
    const [keyword, semantic] = [hits(fusion.keyword), hits(fusion.vector)];
    const fused =
      fusion.fusion === "rrf"
        ? fuseReciprocal(keyword, semantic, fusion.k)
        : fuseMinMax(keyword, semantic, fusion.alpha);
    fused.sort((a, b) => b.score - a.score || a.slot - b.slot);
    assert.deepEqual(
      fused.map(({ slot, score }) => [names[slot], score]),
      fusion.fused,
    );
  });
}
