/** Milliseconds since `started`, a `performance.now()` timestamp, rounded to the microsecond. */
export function elapsedMs(started: number): number {
  return Math.round((performance.now() - started) * 1000) / 1000;
}
