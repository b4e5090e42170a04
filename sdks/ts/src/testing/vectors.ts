import { readFileSync } from "node:fs";

/** Read a file of the test vectors that every SDK must reproduce. */
export function sharedVectors(name: string): unknown {
  const file = new URL(`../../../vectors/${name}.json`, import.meta.url);
  return JSON.parse(readFileSync(file, "utf8"));
}
