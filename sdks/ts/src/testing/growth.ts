/** Complexity, whatever the speed of the machine. */

/** Times the smaller size: linear work takes 16 times as long, quadratic work 256 times. */
const FACTOR = 16;
const ROUNDS = 5;
/** Far more than the resolution of the clock. */
const LEAST_MICROSECONDS = 2000;

/**
 * The exponent with which the CPU time of `work` grows from `size` to 16 times `size`: 1 for linear
 * work, 2 for quadratic work. CPU time, because others may use the machine; the least of some rounds,
 * because a round may collect garbage. A limit of 1.5 leaves a factor of four to both sides.
 */
export async function growth(work: (size: number) => unknown, size: number): Promise<number> {
  const least = [Infinity, Infinity];
  for (let round = 0; round < ROUNDS; round++) {
    for (const [i, taken] of [size, size * FACTOR].entries()) {
      least[i] = Math.min(least[i] ?? Infinity, await microseconds(work, taken));
    }
  }
  const [small = NaN, large = NaN] = least;
  return Math.log(large / small) / Math.log(FACTOR);
}

/** CPU time of one call, which is repeated until the clock can tell. */
async function microseconds(work: (size: number) => unknown, size: number): Promise<number> {
  const began = process.cpuUsage(); // short limit: compared with another size
  for (let calls = 1; ; calls++) {
    await work(size);
    // short limit: the same
    const { user, system } = process.cpuUsage(began);
    if (user + system >= LEAST_MICROSECONDS) return (user + system) / calls;
  }
}
