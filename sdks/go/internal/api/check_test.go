package api

import (
	"testing"

	"memoryd/internal/wire"
)

// decoded returns what the JSON of a base64 string contains, and why it is refused.
func decoded(encoded string) (content []byte, err error) {
	var c checker
	value := wanted[*string](&c, "key", []byte(encoded))
	content = c.base64("key", value)
	return content, c.err
}

func TestOnlyCanonicalBase64IsDecoded(t *testing.T) {
	for _, content := range []string{"YR==", "YWJ=", "YWI==", "=", "====", "YQ==\\n", "Y\\rQ==", "YQ", "-_-_", "ＹＱ=="} {
		if bytes, err := decoded(`"` + content + `"`); err == nil {
			t.Errorf("%s: %q", content, bytes)
		}
	}
	for content, want := range map[string]string{`""`: "", `"YQ=="`: "a", `"YWI="`: "ab", `"Y\u0051=="`: "a"} {
		if bytes, err := decoded(content); err != nil || bytes == nil || string(bytes) != want {
			t.Errorf("%s: %q, %v", content, bytes, err)
		}
	}
	for _, content := range []string{"5", "[]", "{}", "true", "null"} {
		if bytes, err := decoded(content); err == nil {
			t.Errorf("%s: %q", content, bytes)
		}
	}
}

// A value that replaces another must not contain anything of it.
func TestRepeatedMetadataIsNotMerged(t *testing.T) {
	var body documentBody
	if err := wire.Unmarshal([]byte(`{"metadata":{"a":1,"b":2},"metadata":{"b":3}}`), &body); err != nil {
		t.Fatal(err)
	}
	var c checker
	if got := c.object("metadata", body.Metadata); c.err != nil || len(got) != 1 || string(got["b"]) != "3" {
		t.Errorf("%s, %v", got, c.err)
	}
}
