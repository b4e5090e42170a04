/** Compare strings by their UTF-8 bytes, which is the order of code points. */
export function compareUtf8(a: string, b: string): number {
  const common = Math.min(a.length, b.length);
  for (let i = 0; i < common; i++) {
    const difference = rank(a.charCodeAt(i)) - rank(b.charCodeAt(i));
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

/** UTF-16 sorts surrogates, which encode the highest code points, below U+E000…U+FFFF. */
function rank(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}
