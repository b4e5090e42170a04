const LONGEST_DIFF = 4e6;

/** Words and the spaces between them. */
function words(text) {
  return text.match(/\s+|[^\s]+/g) ?? [];
}

/**
 * Which words of a text are not in another text, at the same place in the order of both: by their
 * longest common subsequence, or for long texts by common beginning and end.
 * @returns {Array<[string, boolean]>} pieces, and whether they differ
 */
function differences(text, other) {
  if (text === other) return [[text, false]];
  const [ours, theirs] = [words(text), words(other)];
  let start = 0;
  while (start < ours.length && start < theirs.length && ours[start] === theirs[start]) start += 1;
  let end = 0;
  while (end < ours.length - start && end < theirs.length - start && ours.at(-1 - end) === theirs.at(-1 - end)) end += 1;
  const [a, b] = [ours.slice(start, ours.length - end), theirs.slice(start, theirs.length - end)];
  const middle = a.length * b.length > LONGEST_DIFF ? [[a.join(""), true]] : unmatched(a, b);
  return joined([[ours.slice(0, start).join(""), false], ...middle, [ours.slice(ours.length - end).join(""), false]]);
}

/** Neighbours that are alike as one piece, so that a long difference is one element. */
function joined(pieces) {
  const groups = [];
  for (const [piece, differs] of pieces) {
    if (piece === "") continue;
    const last = groups.at(-1);
    if (last !== undefined && last[1] === differs) last[0].push(piece);
    else groups.push([[piece], differs]);
  }
  return groups.map(([words, differs]) => [words.join(""), differs]);
}

function unmatched(a, b) {
  const lengths = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      lengths[i][j] = a[i] === b[j] ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
    }
  }
  const pieces = [];
  let [i, j] = [0, 0];
  while (i < a.length) {
    if (j < b.length && a[i] === b[j]) {
      pieces.push([a[i], false]);
      i += 1;
      j += 1;
    } else if (j < b.length && lengths[i][j + 1] >= lengths[i + 1][j]) {
      j += 1;
    } else {
      pieces.push([a[i], true]);
      i += 1;
    }
  }
  return pieces;
}

/** A text with what another one lacks marked. */
function markedText(text, other) {
  if (other === null || other === undefined) return [text];
  return differences(text, other).map(([piece, differs]) => (differs ? el("mark", {}, piece) : piece));
}
