import { setTimeout as sleep } from "node:timers/promises";

/** Wait until a condition holds; after a minute, which no busy machine takes, fail. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let looks = 0; looks < 3000; looks++) {
    if (await condition()) return;
    await sleep(20); // short limit: between two looks
  }
  throw new Error(`within a minute it was never true that ${String(condition)}`);
}
