package brain

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

const (
	// killHome is set where this test binary is the daemon that is to be killed.
	killHome = "MEMORYD_TEST_KILL_HOME"

	// killed is the number of documents in a change: enough that file writes dominate its duration.
	killed = 300
)

// hiddenName names a document that is hidden, so that indexing takes no time.
func hiddenName(n int) string { return fmt.Sprintf("_%d", n%killed) }

// TestHelperChangesUntilItIsKilled is the process that the other test kills.
func TestHelperChangesUntilItIsKilled(t *testing.T) {
	home := os.Getenv(killHome)
	if home == "" {
		t.Skip("run by TestNoDocumentIsLostByAKill")
	}
	b := get(t, newTestStore(t, home, nil), "b")
	var rotation []Operation
	for n := range killed - 1 {
		rotation = append(rotation, rename(hiddenName(n), "_t"), rename(hiddenName(n+1), hiddenName(n)),
			rename("_t", hiddenName(n+1)))
	}
	fmt.Println("changing")
	for {
		change(t, b, rotation...)
		change(t, b, rename(hiddenName(0), hiddenName(0)+"/below"))
		change(t, b, rename(hiddenName(0)+"/below", hiddenName(0)))
	}
}

func TestNoDocumentIsLostByAKill(t *testing.T) {
	home := t.TempDir()
	store := newTestStore(t, home, nil)
	var first []Operation
	var want []string
	for n := range killed {
		first = append(first, put(hiddenName(n), hiddenName(n)))
		want = append(want, hiddenName(n))
	}
	change(t, create(t, store, "b"), first...)
	slices.Sort(want)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	for round := range 10 {
		helper := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHelperChangesUntilItIsKilled$")
		helper.Env = append(os.Environ(), killHome+"="+home)
		output, err := helper.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := helper.Start(); err != nil {
			t.Fatal(err)
		}
		line, _ := bufio.NewReader(output).ReadString('\n')
		// short limit: it may be killed at any moment
		time.Sleep(time.Duration(20+7*round) * time.Millisecond)
		_ = helper.Process.Kill()
		if err := helper.Wait(); line != "changing\n" {
			t.Fatalf("%q, %v", line, err)
		}
		newTestStore(t, home, nil)
		found := contents(t, filepath.Join(home, "brains/b"))
		if got := slices.Sorted(maps.Values(found)); !slices.Equal(got, want) {
			t.Fatalf("round %d: %d documents, %d different", round, len(got), len(slices.Compact(got)))
		}
	}
}
