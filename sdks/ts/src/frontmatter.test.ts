import assert from "node:assert/strict";
import { test } from "node:test";

import { toIndexedDocument } from "./brain/source.js";
import { parseFrontMatter } from "./frontmatter.js";
import { growth } from "./testing/growth.js";
import { sharedVectors } from "./testing/vectors.js";

const { cases } = sharedVectors("frontmatter") as {
  cases: {
    text: string;
    body: string;
    metadata: Record<string, string | string[]>;
    title: string | null;
    tags: string[];
  }[];
};

for (const { text, body, metadata, title, tags } of cases) {
  test(`front matter of ${JSON.stringify(text)}`, () => {
    const document = toIndexedDocument("a.md", Buffer.from(text), undefined);
    // Entries, because assert compares neither keys such as __proto__ nor their order.
    assert.deepEqual(Object.entries(document.metadata), Object.entries(metadata));
    assert.deepEqual([document.title ?? null, document.tags], [title, tags]);
    assert.equal(document.chunks.join(""), body);
  });
}

test("empty tags of the request apply", () => {
  const content = "---\ntitle: Orchard\ntags: [fruit]\n---\nThe walnut stands.";
  const sidecar = Buffer.from('{"title": "", "tags": []}');
  const { title, tags } = toIndexedDocument("a.md", Buffer.from(content), sidecar);
  assert.deepEqual([title, tags], ["", []]);
});

const long: Record<string, (size: number) => string> = {
  lines: (size) => `---\n${"k: v\n".repeat(size)}`,
  quotes: (size) => `---\nk: [${"'a, ".repeat(size)}]\n`,
  "both quotes": (size) => `---\nk: [${'\'a", "'.repeat(size)}]\n`,
  blanks: (size) => `---\nk: ['${" ".repeat(2 * size)}' x]\n`,
};

for (const [name, content] of Object.entries(long)) {
  test(`front matter of many ${name} is parsed in linear time`, async () => {
    const parse = (size: number) => {
      assert.equal(parseFrontMatter(content(size)).text, content(size));
      assert.equal(parseFrontMatter(`${content(size)}---\nbody`).text, "body");
    };
    assert.ok((await growth(parse, 2000)) < 1.5);
  });
}
