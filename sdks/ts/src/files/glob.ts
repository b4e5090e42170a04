/** Matches any one character. */
const ANY = undefined;

type Piece = (string | typeof ANY)[];

/**
 * Compile a glob that matches whole names: `*` is any number of characters, `?` is one, anything else
 * is itself; a character is a code point. The pieces between stars are located from left to right, and
 * the first position is always the best one, so there is no backtracking as in a regular expression.
 */
export function compileGlob(pattern: string): (name: string) => boolean {
  const pieces = pattern
    .split("*")
    .map((piece): Piece => Array.from(piece, (character) => (character === "?" ? ANY : character)));
  const [first = [], ...others] = pieces;
  const last = others.pop();
  const least = pieces.reduce((sum, { length }) => sum + length, 0);
  return (name) => {
    const characters = Array.from(name);
    if (characters.length < least || !matchesAt(characters, first, 0)) return false;
    if (last === undefined) return characters.length === first.length;
    const end = characters.length - last.length;
    if (!matchesAt(characters, last, end)) return false;
    let start = first.length;
    for (const piece of others) {
      while (start + piece.length <= end && !matchesAt(characters, piece, start)) start++;
      start += piece.length;
      if (start > end) return false;
    }
    return true;
  };
}

function matchesAt(characters: readonly string[], piece: Piece, start: number): boolean {
  return piece.every((expected, i) => expected === ANY || expected === characters[start + i]);
}
