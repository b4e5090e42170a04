// Package vectortest reads the vectors that every SDK's tests are held to.
package vectortest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// Load reads a file of sdks/vectors, from the folder of any package of internal.
func Load(t *testing.T, name string, into any) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "vectors", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, into); err != nil {
		t.Fatal(err)
	}
}
