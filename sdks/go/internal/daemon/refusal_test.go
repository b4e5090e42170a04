package daemon

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"memoryd/internal/config"
	"memoryd/internal/problem"
)

// start runs a daemon until the test ends, and returns its address.
func start(t *testing.T, o Options) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	o.Address, o.Home = "127.0.0.1:0", t.TempDir()
	o.Config.Embed.Name = config.Fake
	reading, writing := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, o, writing) }()
	line, err := bufio.NewReader(reading).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Error("it still runs")
		}
	})
	return strings.TrimSpace(strings.TrimPrefix(line, "listening on http://"))
}

// exchange sends bytes on a new connection.
func exchange(t *testing.T, address, request string) *http.Response {
	t.Helper()
	connection, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	_ = connection.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(connection, request); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		t.Fatalf("%.60q: %v", request, err)
	}
	return response
}

func TestInvalidHTTPRequestIsAProblem(t *testing.T) {
	address := start(t, Options{})
	for _, request := range []string{
		"GET /v1/brains/%zz HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /v1/brains/a%2 HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /a\x01b HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /healthz HTTP/1.1\r\n\r\n",
		"GET /healthz HTTP/1.1\r\nHost: a b\r\n\r\n",
		"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
		"GET /healthz HTTP/9.9\r\nHost: localhost\r\n\r\n",
		"GET /healthz\r\n\r\n",
		"POST /v1/brains HTTP/1.1\r\nHost: localhost\r\nExpect: a miracle\r\nContent-Length: 2\r\n\r\n{}",
		"nonsense\r\n\r\n",
		"POST /v1/brains HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: odd\r\n\r\n",
		"POST /v1/brains HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
		"GET /healthz HTTP/1.1\r\nHost: localhost\r\nbad name: x\r\n\r\n",
		"GET /" + strings.Repeat("x", 2<<20) + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
	} {
		response := exchange(t, address, request)
		var body problem.Body
		err := json.NewDecoder(response.Body).Decode(&body)
		if err != nil || response.StatusCode != 400 || response.Header.Get("Content-Type") != problem.MediaType ||
			body.Status != 400 || body.Code != problem.Validation || body.Detail == "" {
			t.Errorf("%.60q: %d %v %+v, %v", request, response.StatusCode, response.Header, body, err)
		}
		if alive := exchange(t, address, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); alive.StatusCode != 200 {
			t.Errorf("%.60q: then %d", request, alive.StatusCode)
		}
	}
}

func TestInvalidRequestAfterAnotherIsAProblem(t *testing.T) {
	connection, err := net.Dial("tcp", start(t, Options{}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	_ = connection.SetDeadline(time.Now().Add(time.Minute))
	reader := bufio.NewReader(connection)
	for _, request := range []struct {
		target string
		status int
		media  string
	}{{"/healthz", 200, "application/json"}, {"/v1/brains/none", 404, problem.MediaType}, {"/v1/brains/%zz", 400, problem.MediaType}} {
		if _, err := io.WriteString(connection, "GET "+request.target+" HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatalf("%s: %v", request.target, err)
		}
		if _, err := io.ReadAll(response.Body); err != nil {
			t.Fatalf("%s: %v", request.target, err)
		}
		if response.StatusCode != request.status || response.Header.Get("Content-Type") != request.media {
			t.Errorf("%s: %d %v", request.target, response.StatusCode, response.Header)
		}
	}
}

func TestDocumentThatLooksLikeARefusalIsReadUnchanged(t *testing.T) {
	address := start(t, Options{})
	content := string(refusal()) + strings.Repeat("x", 100_000)
	for _, request := range []struct{ method, target, body string }{
		{"POST", "/v1/brains", `{"brainId":"b"}`},
		{"PUT", "/v1/brains/b/documents?path=a", content},
		{"GET", "/v1/brains/b/documents/read?path=a", ""},
	} {
		r, err := http.NewRequestWithContext(t.Context(), request.method, "http://"+address+request.target, strings.NewReader(request.body))
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode >= 300 || request.method == "GET" && string(body) != content {
			t.Errorf("%s: %d %.60q, %v", request.target, response.StatusCode, body, err)
		}
	}
}

func TestUnknownRouteRequiresTheToken(t *testing.T) {
	address := start(t, Options{Token: "hush"})
	for request, want := range map[string]int{
		"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n":                                  401,
		"OPTIONS * HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer hush\r\n\r\n":    404,
		"CONNECT x:80 HTTP/1.1\r\nHost: localhost\r\n\r\n":                               401,
		"GET http://localhost/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n":               200,
		"CONNECT x:80 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer hush\r\n\r\n": 404,
	} {
		if got := exchange(t, address, request); got.StatusCode != want {
			t.Errorf("%q: %d", request, got.StatusCode)
		}
	}
}

func TestOpenStreamsDoNotDelayShutdown(t *testing.T) {
	address := start(t, Options{})
	for _, request := range []string{
		"POST /v1/brains HTTP/1.1\r\nHost: localhost\r\nContent-Length: 15\r\n\r\n{\"brainId\":\"b\"}",
		"GET /v1/brains/b/events HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /v1/brains/b/events HTTP/1.1\r\nHost: localhost\r\n\r\n",
	} {
		if got := exchange(t, address, request); got.StatusCode >= 300 {
			t.Errorf("%d", got.StatusCode)
		}
	}
}

func TestRequestThatNeverEndsIsEnded(t *testing.T) {
	o := Options{}
	o.Config.RequestTimeout = 300 * time.Millisecond // short limit: the requests are endless
	address := start(t, o)
	for _, request := range []string{
		"POST /v1/br",
		"POST /v1/brains HTTP/1.1\r\nHost: localhost\r\n",
		"POST /v1/brains HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nzeb",
		"POST /nowhere HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nz",
	} {
		connection, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_ = connection.SetDeadline(time.Now().Add(time.Minute))
		if _, err := io.WriteString(connection, request); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(connection); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%q: still open", request)
		}
		_ = connection.Close()
	}
}

// The bytes of both requests arrive together, so that net/http reads nothing for the second one.
func TestInvalidRequestThatArrivesWithAValidOneIsAProblem(t *testing.T) {
	address := start(t, Options{})
	connection, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	_ = connection.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(connection, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nnonsense\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(connection)
	for _, want := range []struct {
		status    int
		mediaType string
	}{{200, "application/json"}, {400, problem.MediaType}} {
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != want.status || response.Header.Get("Content-Type") != want.mediaType {
			t.Errorf("%d %v, want %+v", response.StatusCode, response.Header, want)
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			t.Fatal(err)
		}
	}
}
