package api

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"memoryd/internal/brain"
	"memoryd/internal/files"
)

const documents = "/v1/brains/b/documents"

// at returns a document route with a path parameter.
func at(route, path string) string { return documents + route + "?path=" + url.QueryEscape(path) }

func expectStatus(t *testing.T, got answer, status int) {
	t.Helper()
	if got.status != status {
		t.Errorf("%d %.200s, want %d", got.status, got.body, status)
	}
}

func expectRead(t *testing.T, server *httptest.Server, path, want string) {
	t.Helper()
	if got := ask(t, server, "GET", at("/read", path), ""); got.status != 200 || got.body != want {
		t.Errorf("%s: %d %.80q, want %.80q", path, got.status, got.body, want)
	}
}

func TestDocumentIsReadBackUnchanged(t *testing.T) {
	server := newTestServer(t, nil)
	content := "zebra \x00\xff\r\n"
	expectStatus(t, ask(t, server, "PUT", at("", "a b/ü+&.md"), content), 204)
	got := ask(t, server, "GET", documents+"/read?path=a+b%2F%C3%BC%2B%26.md&other=1&other=2", "")
	if got.status != 200 || got.body != content {
		t.Errorf("%d %q", got.status, got.body)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/octet-stream", "Content-Length": "10",
		"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
	} {
		if got.header.Get(name) != want {
			t.Errorf("%s: %q", name, got.header.Get(name))
		}
	}
	got = ask(t, server, "HEAD", at("", "a b/ü+&.md"), "")
	if got.status != 200 || got.body != "" || got.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%+v", got)
	}
	for path, status := range map[string]int{"no": 404, "a b": 404, "../x": 400} {
		if got := ask(t, server, "HEAD", at("", path), ""); got.status != status || got.body != "" {
			t.Errorf("%s: %+v", path, got)
		}
	}
	expectStatus(t, ask(t, server, "PUT", at("", "empty"), ""), 204)
	expectRead(t, server, "empty", "")
	expectStatus(t, ask(t, server, "POST", at("/append", "empty"), "one"), 204)
	expectStatus(t, ask(t, server, "POST", at("/append", "empty"), " two"), 204)
	expectRead(t, server, "empty", "one two")
	expectStatus(t, ask(t, server, "POST", documents+"/rename", `{"from":"empty","to":"full/x"}`), 204)
	expectRead(t, server, "full/x", "one two")
	expectStatus(t, ask(t, server, "DELETE", at("", "full/x"), ""), 204)
	expectStatus(t, ask(t, server, "GET", at("/stat", "full"), ""), 404)
}

func TestStatAndListing(t *testing.T) {
	server := newTestServer(t, nil)
	began := time.Now().Truncate(time.Second) // a file system's clock may be a little behind
	for _, path := range []string{"a/b.md", "a/c/d.md", "e.md", "_f.md"} {
		expectStatus(t, ask(t, server, "PUT", at("", path), "12345"), 204)
	}
	var item struct {
		Path  string    `json:"path"`
		Size  int       `json:"size"`
		Mtime time.Time `json:"mtime"`
		IsDir bool      `json:"is_dir"`
	}
	for path, size := range map[string]int{"a/b.md": 5, "_f.md": 5, "a": 0} {
		got := ask(t, server, "GET", at("/stat", path), "")
		if err := json.Unmarshal([]byte(got.body), &item); err != nil || item.Path != path || item.Size != size ||
			item.IsDir != (size == 0) || item.Mtime.Before(began) || item.Mtime.After(time.Now()) || !strings.Contains(got.body, `Z"`) {
			t.Errorf("%+v, %v", got, err)
		}
		if got.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%v", got.header)
		}
	}
	for query, want := range map[string]string{
		"":                             "a e.md",
		"?dir=&include_generated=true": "_f.md a e.md",
		"?recursive=true&include_generated=false": "a/b.md a/c/d.md e.md",
		"?dir=a":                        "a/b.md a/c",
		"?dir=a&recursive=true&glob=d*": "a/c/d.md",
		"?glob=":                        "",
		"?dir=e.md":                     "",
		"?dir=nowhere":                  "",
	} {
		got := ask(t, server, "GET", documents+query, "")
		var listing struct{ Items []struct{ Path string } }
		err := json.Unmarshal([]byte(got.body), &listing)
		var paths []string
		for _, item := range listing.Items {
			paths = append(paths, item.Path)
		}
		if err != nil || strings.Join(paths, " ") != want || listing.Items == nil {
			t.Errorf("%s: %s", query, got.body)
		}
	}
}

func TestInvalidDocumentRequestIsAProblem(t *testing.T) {
	server := newTestServer(t, nil)
	expectStatus(t, ask(t, server, "PUT", at("", "a"), "zebra"), 204)
	ops := func(list string) string {
		return `{"ops":[{"type":"write","path":"n","content_base64":""},` + list + `]}`
	}
	const read, batch, rename = documents + "/read", documents + "/batch-ops", documents + "/rename"
	for _, test := range []struct {
		method, path, body string
		status             int
		detail             string
	}{
		{"GET", read, "", 400, "path: missing"},
		{"GET", read + "?path=", "", 400, "path: missing"},
		{"GET", read + "?path=a&path=a", "", 400, "path: occurs twice"},
		{"GET", read + "?path=a%2", "", 400, "path: a parameter contains an invalid escape"},
		{"GET", read + "?path=a&other=%zz", "", 400, "escape"},
		{"GET", read + "?path=%ff", "", 400, "UTF-8"},
		{"GET", read + "?path=%2e%2e%2fx", "", 400, "canonical"},
		{"GET", read + "?path=a%00", "", 400, "NUL"},
		{"GET", read + "?path=/etc/passwd", "", 400, "canonical"},
		{"GET", read + "?path=no", "", 404, "no"},
		{"GET", read + "?path=a/b", "", 404, "a/b"},
		{"GET", "/v1/brains/unknown/documents/read?path=", "", 404, "unknown"},
		{"POST", read + "?path=a", "", 405, "GET, HEAD"},
		{"POST", documents, "", 405, "DELETE, GET, HEAD, PUT"},
		{"GET", documents + "/nowhere", "", 404, ""},
		{"GET", documents + "?recursive=1", "", 400, "recursive"},
		{"GET", documents + "?recursive=", "", 400, "recursive"},
		{"GET", documents + "?include_generated=True", "", 400, "include_generated"},
		{"GET", documents + "?dir=..", "", 400, "dir: "},
		{"GET", documents + "?dir=a&dir=a", "", 400, "dir: occurs twice"},
		{"GET", documents + "?glob=%c3", "", 400, "glob: "},
		{"DELETE", at("", "no"), "", 404, "no"},
		{"PUT", at("", "a/b"), "x", 409, "a/b"},
		{"POST", at("/append", "a.json/b"), "x", 409, "a.json/b"},
		{"PUT", at("", "big"), strings.Repeat("x", documentLimit+1), 413, "content exceeds"},
		{"POST", at("/append", "big"), strings.Repeat("x", documentLimit+1), 413, "content exceeds"},
		{"PUT", at("", "big"), strings.Repeat("x", bodyLimit+1), 413, "body exceeds"},
		{"POST", rename, `{"from":"a"}`, 400, "to: missing"},
		{"POST", rename, `{"from":"a","to":"../x"}`, 400, "to: "},
		{"POST", rename, `{"from":5,"to":"x"}`, 400, "from"},
		{"POST", rename, `{"from":"no","to":"no"}`, 404, "no"},
		{"POST", batch, `{}`, 400, "ops"},
		{"POST", batch, `{"ops":[]}`, 400, "ops"},
		{"POST", batch, `{"ops":{}}`, 400, "ops"},
		{"POST", batch, ops(`null`), 400, "ops[1].type: missing"},
		{"POST", batch, ops(`5`), 400, "ops[1]"},
		{"POST", batch, ops(`{"type":"copy","path":"a"}`), 400, "ops[1].type"},
		{"POST", batch, ops(`{"type":"delete"}`), 400, "ops[1].path: missing"},
		{"POST", batch, ops(`{"type":"delete","path":"/a"}`), 400, "ops[1].path"},
		{"POST", batch, ops(`{"type":"write","path":"a"}`), 400, "ops[1].content_base64: missing"},
		{"POST", batch, ops(`{"type":"append","path":"a","content_base64":"YQ"}`), 400, "ops[1].content_base64"},
		{"POST", batch, ops(`{"type":"write","path":"a","content_base64":5}`), 400, "ops[1].content_base64"},
		{"POST", batch, ops(`{"type":"rename","path":"a","to":5}`), 400, "ops[1].to"},
		{"POST", batch, ops(`{"type":"rename","path":"a"}`), 400, "ops[1].to: missing"},
		{"POST", batch, ops(`{"type":"rename","path":"a","to":"a//b"}`), 400, "ops[1].to"},
		{"POST", batch, ops(`{"type":"delete","path":"no"}`), 404, "ops[1]: "},
		{"POST", batch, ops(`{"type":"write","path":"n/x","content_base64":"eA=="}`), 409, "ops[1]: "},
		{"POST", batch, `{"reason":5,"ops":[{"type":"delete","path":"a"}]}`, 400, "reason"},
		{"POST", batch, `{"email":[],"ops":[{"type":"delete","path":"a"}]}`, 400, "email"},
		{"POST", batch, ops(strings.Repeat(`{"type":"delete","path":"a"},`, 1023) + `{"type":"delete","path":"a"}`), 413, "ops"},
	} {
		got := ask(t, server, test.method, test.path, test.body)
		name := test.method + " " + test.path + " " + test.body[:min(len(test.body), 120)]
		expectProblem(t, name, got, test.status, test.detail)
	}
	if got := ask(t, server, "GET", documents+"?recursive=true", ""); strings.Count(got.body, `"path"`) != 1 {
		t.Errorf("something is stored: %s", got.body)
	}
	expectRead(t, server, "a", "zebra")
}

func TestBatchOfOperations(t *testing.T) {
	server := newTestServer(t, nil)
	body := `{"reason":"r","message":null,"author":"me","email":"x","unknown":1,"ops":[
		{"type":"write","path":"a","content_base64":"emVicmE=","to":"../ignored"},
		{"type":"append","path":"a","content_base64":"IHR3bw==","to":7},
		{"type":"rename","path":"a","to":"a/b","content_base64":"no"},
		{"type":"write","path":"c","content_base64":""},
		{"type":"delete","path":"c"}]}`
	if got := ask(t, server, "POST", documents+"/batch-ops", body); got.status != 200 || got.body != `{"committed":5}` {
		t.Errorf("%+v", got)
	}
	expectRead(t, server, "a/b", "zebra two")
	for _, mode := range []string{"bm25", "semantic", "hybrid"} {
		got := ask(t, server, "POST", "/v1/brains/b/search", `{"query":"zebra","mode":"`+mode+`"}`)
		if strings.Count(got.body, `"chunkId"`) != 1 || !strings.Contains(got.body, `"path":"a/b"`) {
			t.Errorf("%s: %s", mode, got.body)
		}
	}
}

func TestNotesOfABatchAreShort(t *testing.T) {
	server := newTestServer(t, nil)
	for _, key := range []string{"reason", "message", "author", "email"} {
		for note, status := range map[string]int{strings.Repeat("é", 2048): 200, strings.Repeat("é", 2048) + "x": 400} {
			body := `{"` + key + `":"` + note + `","ops":[{"type":"write","path":"` + key + `","content_base64":""}]}`
			got := ask(t, server, "POST", documents+"/batch-ops", body)
			if status == 400 {
				expectProblem(t, key, got, status, key)
			} else {
				expectStatus(t, got, status)
			}
		}
	}
}

func TestBatchLimitIsExact(t *testing.T) {
	server := newTestServer(t, nil)
	half := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\xff", contentLimit/2)))
	for more, status := range map[string]int{"": 200, "eA==": 413} {
		body := `{"ops":[{"type":"write","path":"a","content_base64":"` + half + `"},` +
			`{"type":"append","path":"a","content_base64":"` + half + `"},` +
			`{"type":"append","path":"a","content_base64":"` + more + `"}]}`
		expectStatus(t, ask(t, server, "POST", documents+"/batch-ops", body), status)
	}
	expectStatus(t, ask(t, server, "PUT", at("", "b"), strings.Repeat("x", documentLimit)), 204)
}

func TestTruncatedBodyStoresNothing(t *testing.T) {
	var store *brain.Store
	server := newTestServer(t, nil, func(a *API) { store = a.Store })
	for _, head := range []string{"Content-Length: 100\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n5\r\n"} {
		connection, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.WriteString(connection, "PUT "+at("", "cut")+" HTTP/1.1\r\nHost: x\r\n"+head+"zebra")
		if err = errors.Join(err, connection.Close()); err != nil {
			t.Fatal(err)
		}
	}
	expectStatus(t, ask(t, server, "PUT", at("", "whole"), "zebra"), 204)
	server.Close() // waits for all requests
	b, err := store.Get(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := b.List(t.Context(), files.Selection{})
	if err != nil || len(entries) != 1 || entries[0].Path != "whole" {
		t.Errorf("%+v, %v", entries, err)
	}
}

func TestNestingHasALimit(t *testing.T) {
	server := newTestServer(t, nil)
	nested := func(levels int) string {
		return document("deep.md", "zebra", `,"metadata":{"deep":`+strings.Repeat("[", levels)+strings.Repeat("]", levels)+`}`)
	}
	const file, search = "/v1/brains/b/ingest/file", "/v1/brains/b/search"
	for levels, status := range map[int]int{64: 200, 990: 200, 1000: 400, 9_900: 400, 500_000: 400} {
		expectStatus(t, ask(t, server, "POST", file, nested(levels)), status)
		expectStatus(t, ask(t, server, "POST", search, `{"query":"zebra"}`), 200)
	}
	expectStatus(t, ask(t, server, "POST", file, nested(64)), 200)
	found := ask(t, server, "POST", search, `{"query":"zebra"}`)
	if !strings.Contains(found.body, strings.Repeat("[", 64)+strings.Repeat("]", 64)) {
		t.Errorf("%s", found.body)
	}
	for _, body := range []string{strings.Repeat("[", 1<<20), `{"query":` + strings.Repeat(`{"a":`, 1<<18)} {
		expectProblem(t, body[:20], ask(t, server, "POST", search, body), 400, "")
	}
	quoted := `{"query":"zebra ` + strings.Repeat("[", 2000) + `\"[", "x":"` + strings.Repeat(`\\`, 9) + `"}`
	expectStatus(t, ask(t, server, "POST", search, quoted), 200)
}
