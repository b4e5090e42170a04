import assert from "node:assert/strict";
import { test } from "node:test";

import { decodeBase64 } from "./base64.js";

test("only canonical base64 is decoded", () => {
  assert.deepEqual(decodeBase64("emVicmE="), Buffer.from("zebra"));
  assert.deepEqual(decodeBase64(""), Buffer.alloc(0));
  for (const text of ["emVicmE", "emVicmF=", "emVi cmE=", "emVicmE-", "=", "e"]) {
    assert.equal(decodeBase64(text), undefined, text);
  }
});
