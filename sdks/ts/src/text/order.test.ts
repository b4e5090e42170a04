import assert from "node:assert/strict";
import { test } from "node:test";

import { compareUtf8 } from "./order.js";

test("strings sort by their UTF-8 bytes", () => {
  const strings = ["", "a", "a/b", "a.b", "Z", "é", "e\u0301", "東", "\ud7ff", "\ue000", "\uffff"];
  strings.push("😀", "😀a", "😁", "\u{10ffff}", "a😀", "a\uffff");
  for (const a of strings) {
    for (const b of strings) {
      const expected = Buffer.compare(Buffer.from(a), Buffer.from(b));
      assert.equal(Math.sign(compareUtf8(a, b)), expected, `${a} and ${b}`);
    }
  }
});
