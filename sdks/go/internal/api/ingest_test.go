package api

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

var took = regexp.MustCompile(`("tookMs"|"searchMs"):[0-9.]+`)

func TestSearchReturnsTheDocumentAsIngested(t *testing.T) {
	server := newTestServer(t, nil)
	more := `,"title":"T","tags":["x"],"metadata":{"n":12345678901234567890,"deep":{"b":1,"a":[null,1e2]}}`
	got := ask(t, server, "POST", "/v1/brains/b/ingest/file", document("ä.md", "zebra\n", more))
	want := `{"documentId":"bc7bd9245958afea501d61264e17844b","path":"ä.md","chunkCount":1,"bytes":6,"tookMs":0}`
	if body := took.ReplaceAllString(got.body, "$1:0"); got.status != 200 || body != want {
		t.Errorf("%+v", got)
	}
	got = ask(t, server, "POST", "/v1/brains/b/search", `{"query":"zebra","mode":"bm25","filters":{"tags":["x"]}}`)
	for _, part := range []string{
		`"text":"zebra\n","title":"T","metadata":{"deep":{"b":1,"a":[null,1e2]},"n":12345678901234567890}}]`,
		`"trace":{"requestedMode":"bm25","effectiveMode":"bm25","embedderUsed":false,"reranked":false,` +
			`"fellBackToBm25":false,"candidateK":50,"searchMs":0}`,
	} {
		if !strings.Contains(took.ReplaceAllString(got.body, "$1:0"), part) {
			t.Errorf("%s lacks %s", got.body, part)
		}
	}
}

func TestBatch(t *testing.T) {
	server := newTestServer(t, nil)
	var documents []string
	for n := range 1024 {
		documents = append(documents, document(fmt.Sprintf("%d.md", n), "zebra", ""))
	}
	got := ask(t, server, "POST", "/v1/brains/b/ingest/batch", `{"documents":[`+strings.Join(documents, ",")+`]}`)
	if got.status != 200 || strings.Count(got.body, `"chunkCount":1`) != 1024 {
		t.Errorf("%d", got.status)
	}
	want := `{"brainId":"b","documents":1024,"chunks":1024,"vectors":1024,"pending":0}`
	if got := ask(t, server, "GET", "/v1/brains/b", ""); got.body != want {
		t.Errorf("%s", got.body)
	}
}

func TestContentLimitIsExact(t *testing.T) {
	server := newTestServer(t, nil)
	for extra, status := range map[int]int{0: 200, 1: 413} {
		one := document("one.bin", strings.Repeat("\xff", contentLimit+extra), "")
		if got := ask(t, server, "POST", "/v1/brains/b/ingest/file", one); got.status != status {
			t.Errorf("%d more in one: %d", extra, got.status)
		}
		half := strings.Repeat("\xff", contentLimit/2)
		two := `{"documents":[` + document("a.bin", half, "") + "," + document("b.bin", half+strings.Repeat("x", extra), "") + `]}`
		if got := ask(t, server, "POST", "/v1/brains/b/ingest/batch", two); got.status != status {
			t.Errorf("%d more in two: %d", extra, got.status)
		}
	}
}

func TestTooLargeBodyIsRefusedOnEveryRoute(t *testing.T) {
	server := newTestServer(t, nil)
	body := strings.Repeat("x", bodyLimit+1)
	for _, path := range []string{"/v1/brains/b/search", "/v1/brains/unknown/ask", "/v1/brains", "/nowhere"} {
		expectProblem(t, path, ask(t, server, "POST", path, body), 413, "body exceeds")
	}
}

func TestBrainIsDeletedAfterConfirmation(t *testing.T) {
	server := newTestServer(t, nil)
	ask(t, server, "POST", "/v1/brains", `{"brainId":"a","description":"first"}`)
	want := `{"items":[{"brainId":"a"},{"brainId":"b"}]}`
	if got := ask(t, server, "GET", "/v1/brains", ""); got.body != want {
		t.Errorf("%s", got.body)
	}
	for _, status := range []int{204, 404} {
		request, err := http.NewRequestWithContext(t.Context(), "DELETE", server.URL+"/v1/brains/a", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Confirm-Delete", "yes")
		if got := send(t, request); got.status != status {
			t.Errorf("%+v", got)
		}
	}
}
