package api

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestTokenIsRequiredOfEveryRequestExceptHealth(t *testing.T) {
	const token = "hush-hush"
	server := newTestServer(t, nil, func(a *API) { a.Token = token })
	for _, test := range []struct {
		method, path  string
		authorization []string
		status        int
	}{
		{"GET", "/healthz", nil, 200},
		{"GET", "/healthz", []string{"Bearer wrong"}, 200},
		{"GET", "/%68ealthz", nil, 401},
		{"GET", "/healthz/", nil, 401},
		{"GET", "/version", nil, 401},
		{"GET", "/version", []string{""}, 401},
		{"GET", "/version", []string{"Bearer"}, 401},
		{"GET", "/version", []string{"Bearer "}, 401},
		{"GET", "/version", []string{token}, 401},
		{"GET", "/version", []string{"Basic " + token}, 401},
		{"GET", "/version", []string{"Bearer " + token, "Bearer " + token}, 401},
		{"GET", "/version", []string{"Bearer wrong"}, 403},
		{"GET", "/version", []string{"Bearer " + token + "x"}, 403},
		{"GET", "/version", []string{"Bearer " + token + " x"}, 403},
		{"GET", "/version", []string{"Bearer " + strings.ToUpper(token)}, 403},
		{"GET", "/version", []string{"Bearer " + token}, 200},
		{"GET", "/version", []string{"bEARER  " + token}, 200},
		{"GET", "/nowhere", nil, 401},
		{"GET", "/nowhere", []string{"Bearer " + token}, 404},
		{"PATCH", "/v1/brains", nil, 401},
		{"PUT", documents + "?path=a", nil, 401},
		{"PUT", documents + "?path=a", []string{"Bearer wrong"}, 403},
		{"GET", documents + "/read?path=a", []string{"Bearer " + token}, 404},
		{"GET", "/v1/brains/b/events", nil, 401},
	} {
		request, err := http.NewRequestWithContext(t.Context(), test.method, server.URL+"/", strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		request.URL.Opaque = test.path
		request.Header["Authorization"] = test.authorization
		got := send(t, request)
		name := test.method + " " + test.path + " " + strings.Join(test.authorization, ", ")
		if test.status >= 400 {
			expectProblem(t, name, got, test.status, "")
		} else {
			expectStatus(t, got, test.status)
		}
		if want := map[int]string{401: "Bearer"}[test.status]; got.header.Get("WWW-Authenticate") != want {
			t.Errorf("%s: %v", name, got.header)
		}
		if strings.Contains(got.body, token) {
			t.Errorf("%s tells the token: %s", name, got.body)
		}
	}
}

func TestRefusedRequestLeavesItsConnectionUsable(t *testing.T) {
	server := newTestServer(t, nil, func(a *API) { a.Token = "hush" })
	connection := dial(t, server)
	_, err := io.WriteString(connection, "PUT "+documents+"?path=a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nzebra"+
		"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	answers, err := io.ReadAll(connection)
	if err != nil || !strings.Contains(string(answers), "401 Unauthorized") || !strings.HasSuffix(string(answers), `{"ok":true}`) {
		t.Errorf("%s, %v", answers, err)
	}
}

func TestClientThatSendsALargeBodyFirstSeesTheRefusal(t *testing.T) {
	server := newTestServer(t, nil, func(a *API) { a.Token = "hush" })
	connection := dial(t, server)
	body := strings.Repeat("x", bodyLimit)
	_, err := fmt.Fprintf(connection, "POST /v1/brains HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	if err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 100)
	if n, err := connection.Read(answer); err != nil || !strings.Contains(string(answer[:n]), "401 Unauthorized") {
		t.Errorf("%s, %v", answer, err)
	}
}

func TestRefusalDoesNotWaitForTheBody(t *testing.T) {
	server := newTestServer(t, nil, func(a *API) { a.Token = "hush" })
	for _, more := range []string{"", "Expect: 100-continue\r\n"} {
		connection := dial(t, server)
		_, err := io.WriteString(connection, "POST /v1/brains HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n"+more+"\r\n")
		if err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, 100)
		if n, err := connection.Read(answer); err != nil || !strings.Contains(string(answer[:n]), "401 Unauthorized") {
			t.Errorf("%s%s, %v", more, answer, err)
		}
		_ = connection.Close()
	}
}
