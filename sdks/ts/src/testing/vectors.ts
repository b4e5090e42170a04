import { readFileSync } from "node:fs";

/** A file of the numbers that every SDK is held to. */
export function sharedVectors(name: string): unknown {
  const file = new URL(`../../../vectors/${name}.json`, import.meta.url);
  return JSON.parse(readFileSync(file, "utf8"));
}
