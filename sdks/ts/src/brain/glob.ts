/** What fits any one character. */
const ANY = undefined;

type Piece = (string | typeof ANY)[];

/**
 * Whether a whole name fits `pattern`: `*` is any number of characters, `?` is one, anything else is
 * itself; a character is a code point. What stands between stars is looked for from left to right, and
 * the first place is the best: nothing is ever tried again, as a regular expression would.
 */
export function fits(pattern: string): (name: string) => boolean {
  const pieces = pattern
    .split("*")
    .map((piece): Piece => Array.from(piece, (character) => (character === "?" ? ANY : character)));
  const [first = [], ...others] = pieces;
  const last = others.pop();
  const least = pieces.reduce((sum, { length }) => sum + length, 0);
  return (name) => {
    const characters = Array.from(name);
    if (characters.length < least || !fitsAt(characters, first, 0)) return false;
    if (last === undefined) return characters.length === first.length;
    const end = characters.length - last.length;
    if (!fitsAt(characters, last, end)) return false;
    let start = first.length;
    for (const piece of others) {
      while (start + piece.length <= end && !fitsAt(characters, piece, start)) start++;
      start += piece.length;
      if (start > end) return false;
    }
    return true;
  };
}

function fitsAt(characters: readonly string[], piece: Piece, start: number): boolean {
  return piece.every((wanted, i) => wanted === ANY || wanted === characters[start + i]);
}
