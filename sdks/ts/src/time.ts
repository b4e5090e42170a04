/** Milliseconds since `started`, of `performance.now()`, to the microsecond. */
export function elapsedMs(started: number): number {
  return Math.round((performance.now() - started) * 1000) / 1000;
}
