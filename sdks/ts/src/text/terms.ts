/** Terms: the tokenization that queries, the feature hash and the fake reader share. */

const RUN = /[\p{L}\p{N}]{2,}/gu;

const QUERY_TERM_LIMIT = 256;

/** Lower-cased runs of at least two letters or digits, in order, with duplicates. */
export function terms(text: string): string[] {
  return text.normalize("NFKC").toLowerCase().match(RUN) ?? [];
}

/** The terms that a search uses: the first 256 of the query. */
export function queryTerms(query: string): string[] {
  return terms(query).slice(0, QUERY_TERM_LIMIT);
}
