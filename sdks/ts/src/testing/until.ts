import { setTimeout as sleep } from "node:timers/promises";

/** Wait until a condition holds; after a minute, which no busy machine takes, give up. */
export async function until(condition: () => boolean): Promise<void> {
  const end = performance.now() + 60_000;
  while (!condition() && performance.now() < end) await sleep(20);
}
