package api

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"memoryd/internal/brain"
	"memoryd/internal/embed"
	"memoryd/internal/reader"
	"memoryd/internal/retrieve"
)

// newTestServer serves an empty brain `b`; set may change the API.
func newTestServer(t *testing.T, answers reader.Reader, set ...func(*API)) *httptest.Server {
	t.Helper()
	store, err := brain.NewStore(brain.Home(t.TempDir()), embed.FeatureHash{})
	if err != nil {
		t.Fatal(err)
	}
	api := API{
		Version:   "0.0.0",
		RunID:     "run-7",
		Store:     store,
		Retriever: retrieve.Retriever{Embedder: embed.FeatureHash{}},
		Reader:    answers,
		PingAfter: time.Minute,
	}
	if _, err := store.Create(t.Context(), "b", nil); err != nil {
		t.Fatal(err)
	}
	for _, apply := range set {
		apply(&api)
	}
	server := httptest.NewUnstartedServer(api.Handler())
	server.Config.ErrorLog = log.New(failing{t}, "", 0)
	server.Start()
	t.Cleanup(func() {
		server.Close()
		_ = store.Close()
	})
	return server
}

// failing fails the test for what net/http logs, such as a panic of its own.
type failing struct{ t *testing.T }

func (f failing) Write(line []byte) (int, error) {
	f.t.Errorf("net/http: %s", line)
	return len(line), nil
}

type answer struct {
	status int
	header http.Header
	body   string
}

func ask(t *testing.T, server *httptest.Server, method, path, body string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return send(t, request)
}

func send(t *testing.T, request *http.Request) answer {
	t.Helper()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(content)}
}

// document returns a body of ingest/file, with more keys appended.
func document(path, content, more string) string {
	encoded := base64.StdEncoding.EncodeToString([]byte(content))
	return fmt.Sprintf(`{"path":%q,"contentType":"text/plain","contentBase64":%q%s}`, path, encoded, more)
}

func expectProblem(t *testing.T, name string, got answer, status int, detail string) {
	t.Helper()
	var problem struct {
		Status              int
		Title, Detail, Code string
	}
	if err := json.Unmarshal([]byte(got.body), &problem); err != nil {
		t.Errorf("%s: %d %.80q", name, got.status, got.body)
		return
	}
	if got.status != status || problem.Status != status || problem.Title == "" || problem.Code == "" ||
		got.header.Get("Content-Type") != "application/problem+json" || !strings.Contains(problem.Detail, detail) {
		t.Errorf("%s: %d %+v, want %d %q", name, got.status, problem, status, detail)
	}
}

func TestHealthAndVersion(t *testing.T) {
	server := newTestServer(t, nil)
	if got := ask(t, server, "GET", "/healthz", ""); got.body != `{"ok":true}` {
		t.Errorf("%+v", got)
	}
	want := `{"name":"memoryd-go","version":"0.0.0","contract":"1","runId":"run-7"}`
	if got := ask(t, server, "GET", "/version", ""); got.body != want {
		t.Errorf("%+v", got)
	}
}

func TestInvalidRequestIsAProblem(t *testing.T) {
	server := newTestServer(t, reader.Fake{})
	const search, asking = "/v1/brains/b/search", "/v1/brains/b/ask"
	const file, batch = "/v1/brains/b/ingest/file", "/v1/brains/b/ingest/batch"
	ok := document("ok.md", "zebra", "")
	many := func(n int, doc string) string {
		return `{"documents":[` + strings.TrimSuffix(strings.Repeat(doc+",", n), ",") + `]}`
	}
	for _, test := range []struct {
		method, path, body string
		status             int
		detail             string
	}{
		{"GET", "/nowhere", "", 404, "/nowhere"},
		{"GET", "/healthz/", "", 404, ""},
		{"GET", "//healthz", "", 404, ""},
		{"PUT", "/v1/brains", "", 405, "GET, HEAD, POST"},
		{"GET", search, "", 405, "POST"},
		{"POST", "/v1/brains", `{"brainId":"b"}`, 409, "exists"},
		{"POST", "/v1/brains", `{"brainId":".."}`, 400, "brainId"},
		{"POST", "/v1/brains", `{"brainId":7}`, 400, "brainId"},
		{"POST", "/v1/brains", `{"brainid":"x"}`, 400, "brainId: missing"},
		{"GET", "/v1/brains/unknown", "", 404, "unknown"},
		{"GET", "/v1/brains/%2e%2e", "", 404, ""},
		{"GET", "/v1/brains/b%2Fsearch", "", 404, ""},
		{"GET", "/v1/brains/a%20b", "", 400, "brainId"},
		{"DELETE", "/v1/brains/b", "", 428, "X-Confirm-Delete"},
		{"DELETE", "/v1/brains/unknown", "", 404, ""},
		{"POST", search, ``, 400, "object"},
		{"POST", search, `null`, 400, "object"},
		{"POST", search, `[]`, 400, "object"},
		{"POST", search, `{`, 400, "no JSON"},
		{"POST", search, `{"query":"x"} x`, 400, "no JSON"},
		{"POST", search, `{"query":"` + "\xff" + `"}`, 400, "no JSON"},
		{"POST", search, `{"query":"\ud800"}`, 400, "no JSON"},
		{"POST", search, `{"query":" "}`, 400, "query: must not be blank"},
		{"POST", search, `{"query":null}`, 400, "query: missing"},
		{"POST", search, `{"query":5}`, 400, "query: must not be a number"},
		{"POST", search, `{"query":"x","topK":0}`, 400, "topK: must be in 1…1000"},
		{"POST", search, `{"query":"x","topK":1001}`, 400, "topK"},
		{"POST", search, `{"query":"x","topK":"5"}`, 400, "topK"},
		{"POST", search, `{"query":"x","topK":true}`, 400, "topK"},
		{"POST", search, `{"query":"x","topK":5.5}`, 400, "topK"},
		{"POST", search, `{"query":"x","topK":1e400}`, 400, "topK"},
		{"POST", search, `{"query":"x","candidateK":10001}`, 400, "candidateK"},
		{"POST", search, `{"query":"x","rerankTopN":-1}`, 400, "rerankTopN"},
		{"POST", search, `{"query":"x","mode":"magic"}`, 400, `mode: "magic"`},
		{"POST", search, `{"query":"x","questionDate":"2026-02-30"}`, 400, "questionDate"},
		{"POST", search, `{"query":"x","questionDate":"2026-02-28T1:00:00Z"}`, 400, "questionDate"},
		{"POST", search, `{"query":"x","questionDate":"2026-02-28T10:00:00"}`, 400, "questionDate"},
		{"POST", search, `{"query":"x","filters":[]}`, 400, "filters"},
		{"POST", search, `{"query":"x","filters":{"colour":"red"}}`, 400, "filters.colour: not known"},
		{"POST", search, `{"query":"x","filters":{"tags":["a",null]}}`, 400, "filters.tags"},
		{"POST", search, `{"query":"x","filters":{"scope":"here"}}`, 400, "filters.scope"},
		{"POST", search, `{"query":"x","tuning":{"magic":1}}`, 400, "tuning.magic: not known"},
		{"POST", search, `{"query":"x","tuning":{"fusion":"sum"}}`, 400, "tuning.fusion"},
		{"POST", search, `{"query":"x","tuning":{"alpha":1.5}}`, 400, "tuning.alpha"},
		{"POST", search, `{"query":"x","tuning":{"alpha":1e999}}`, 400, "tuning.alpha"},
		{"POST", search, `{"query":"x","tuning":{"rrfK":0}}`, 400, "tuning.rrfK"},
		{"POST", search, `{"query":"x","tuning":{"kernel":"dot"}}`, 400, "tuning.kernel"},
		{"POST", asking, `{"question":""}`, 400, "question"},
		{"POST", asking, `{"question":"x","readerMode":"wild"}`, 400, "readerMode"},
		{"POST", asking, `{"question":"x","model":5}`, 400, "model"},
		{"POST", "/v1/brains/unknown/ask", `{"question":"x"}`, 404, "unknown"},
		{"POST", file, `{"path":"a.md"}`, 400, "contentType: missing"},
		{"POST", file, `{"path":"a.md","contentType":"t"}`, 400, "contentBase64: missing"},
		{"POST", file, document("../a.md", "x", ""), 400, "path"},
		{"POST", file, document("ok.md", "x", `,"contentBase64":"YQ"`), 400, "contentBase64"},
		{"POST", file, document("ok.md", "x", `,"contentBase64":"YQ==\n"`), 400, "contentBase64"},
		{"POST", file, document("ok.md", "x", `,"contentBase64":"_-=="`), 400, "contentBase64"},
		{"POST", file, document("ok.md", "x", `,"tags":"x"`), 400, "tags"},
		{"POST", file, document("ok.md", "x", `,"tags":[null]`), 400, "tags"},
		{"POST", file, document("ok.md", "x", `,"metadata":[]`), 400, "metadata"},
		{"POST", file, document("ok.md", "x", `,"metadata":{"x":[{"y":-1e999}]}`), 400, "metadata"},
		{"POST", file, document("ok.md", "x", `,"metadata":{"x":NaN}`), 400, "no JSON"},
		{"POST", batch, `{}`, 400, "documents"},
		{"POST", batch, many(1025, ok), 400, "documents"},
		{"POST", batch, many(2, ok)[:len(many(2, ok))-2] + `,null]}`, 400, "documents[2].path"},
		{"POST", batch, `{"documents":[` + ok + `,` + document("/x", "x", "") + `]}`, 400, "documents[1].path"},
		{"POST", batch, `{"documents":[` + ok + `,` + document("x", "x", `,"tags":[5]`) + `]}`, 400, "documents[1].tags"},
		{"POST", batch, `{"documents":[` + ok + `,` + document("ok.md/x", "x", "") + `]}`, 409, "ok.md/x"},
	} {
		got := ask(t, server, test.method, test.path, test.body)
		expectProblem(t, test.method+" "+test.path+" "+test.body[:min(len(test.body), 120)], got, test.status, test.detail)
		if test.status == 405 && got.header.Get("Allow") != test.detail {
			t.Errorf("%s: Allow: %s", test.path, got.header.Get("Allow"))
		}
	}
	if got := ask(t, server, "GET", "/v1/brains/b", ""); !strings.Contains(got.body, `"documents":0`) {
		t.Errorf("something is stored: %s", got.body)
	}
}

func TestValidRequestIsAccepted(t *testing.T) {
	server := newTestServer(t, reader.Fake{})
	for _, body := range []string{
		`{"query":"x","topK":5.0,"candidateK":1e3}`,
		`{"query":"x","topK":null,"mode":null,"filters":null,"tuning":null,"questionDate":null}`,
		`{"query":"x","colour":"red","Query":5}`,
		`{"query":"","query":"x","filters":{"tags":[]},"filters":{}}`,
		`{"query":"x","questionDate":"2026-02-28t10:00:00.5+02:00"}`,
		`{"query":"x","tuning":{"recency":null,"temporal":null,"alpha":1}}`,
		`{"query":"x","tuning":{"recency":{"now":"2026-02-28","relevance":0.8,"weight":0.2,"decayDays":7}}}`,
		`{"query":"x","tuning":{"temporal":{"at":"2026-02-28T10:00:00Z","toleranceDays":2.5,"boost":1}}}`,
	} {
		if got := ask(t, server, "POST", "/v1/brains/b/search", body); got.status != 200 || !strings.Contains(got.body, `"chunks":[]`) {
			t.Errorf("%s: %+v", body, got)
		}
	}
}

func TestRepeatedRecencyOrTemporalReplacesTheFirst(t *testing.T) {
	server := newTestServer(t, nil)
	for _, test := range []struct{ tuning, detail string }{
		{`"recency":{"now":"2026-02-28","relevance":0.8,"weight":0.2,"decayDays":7},"recency":{"now":"2026-02-28"}`, "tuning.recency.relevance"},
		{`"temporal":{"at":"2026-02-28","toleranceDays":2,"boost":1},"temporal":{"at":"2026-02-28","boost":1}`, "tuning.temporal.toleranceDays"},
		{`"recency":{"now":"2026-02-28","colour":"red"}`, "tuning.recency.colour: not known"},
	} {
		got := ask(t, server, "POST", "/v1/brains/b/search", `{"query":"x","tuning":{`+test.tuning+`}}`)
		expectProblem(t, test.tuning, got, 400, test.detail)
	}
}

func TestFirstRefusedDocumentIsNamedWhateverIsWrong(t *testing.T) {
	server := newTestServer(t, nil)
	bad := document("/x", "x", "")
	for _, later := range []string{`,"contentBase64":"YQ"`, `,"metadata":[]`, `,"metadata":{"x":1e999}`, `,"title":5`} {
		body := `{"documents":[` + bad + `,` + document("ok.md", "x", later) + `]}`
		expectProblem(t, later, ask(t, server, "POST", "/v1/brains/b/ingest/batch", body), 400, "documents[0].path")
	}
	for body, place := range map[string]string{
		`{"ops":[{"type":"delete","path":".."},{"type":"delete","path":5}]}`: "ops[0].path",
		`{"ops":[{"type":"delete","path":5},{"type":"delete","path":".."}]}`: "ops[0].path: must not be a number",
		`{"ops":[5]}`: "ops[0]: must not be a number",
	} {
		expectProblem(t, body, ask(t, server, "POST", "/v1/brains/b/documents/batch-ops", body), 400, place)
	}
}
