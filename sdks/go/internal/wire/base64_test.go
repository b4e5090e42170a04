package wire

import "testing"

func TestOnlyCanonicalBase64IsDecoded(t *testing.T) {
	for _, content := range []string{"YR==", "YWJ=", "YWI==", "=", "====", "YQ==\\n", "Y\\rQ==", "YQ", "-_-_", "ＹＱ=="} {
		var bytes Bytes
		if err := Unmarshal([]byte(`"`+content+`"`), &bytes); err == nil {
			t.Errorf("%s: %q", content, bytes)
		}
	}
	for content, want := range map[string]string{`""`: "", `"YQ=="`: "a", `"YWI="`: "ab", `"Y\u0051=="`: "a"} {
		var bytes Bytes
		if err := Unmarshal([]byte(content), &bytes); err != nil || bytes == nil || string(bytes) != want {
			t.Errorf("%s: %q, %v", content, bytes, err)
		}
	}
	for _, content := range []string{"5", "[]", "{}", "true"} {
		var bytes Bytes
		if err := Unmarshal([]byte(content), &bytes); err == nil {
			t.Errorf("%s: %q", content, bytes)
		}
	}
	bytes := Bytes("x")
	if err := Unmarshal([]byte("null"), &bytes); err != nil || bytes != nil {
		t.Errorf("null: %q, %v", bytes, err)
	}
}
