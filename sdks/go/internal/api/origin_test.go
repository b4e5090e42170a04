package api

import (
	"net/http"
	"testing"
)

// TestWebPageCannotUseALoopbackDaemon guards against a page that posts to the daemon of its visitor.
func TestWebPageCannotUseALoopbackDaemon(t *testing.T) {
	server := newTestServer(t, nil, func(a *API) { a.Loopback = true })
	own := server.Listener.Addr().String()
	for _, test := range []struct {
		host    string
		origins []string
		site    string
		served  bool
	}{
		{own, nil, "", true},
		{"localhost", nil, "none", true},
		{"LOCALHOST:", nil, "same-site", true},
		{"127.9.9.9:80", nil, "same-origin", true},
		{"[::1]:80", []string{"http://localhost:3000"}, "cross-site", true},
		{own, []string{"HTTPS://127.0.0.1"}, "", true},
		{"example.com", nil, "", false},
		{"localhost.", nil, "", false},
		{"localhoſt", nil, "", false},
		{"localhost.example.com", nil, "", false},
		{"127.0.0.1.example.com", nil, "", false},
		{"127.1", nil, "", false},
		{"127.0.0.255", nil, "", true},
		{"127.0.0.256", nil, "", false},
		{"127.300.0.1:80", nil, "", false},
		{"[::2]", nil, "", false},
		{"0.0.0.0", nil, "", false},
		{own, []string{"null"}, "", false},
		{own, []string{""}, "", false},
		{own, []string{"https://example.com"}, "same-origin", false},
		{own, []string{"http://localhost.example.com"}, "", false},
		{own, []string{"file://localhost"}, "", false},
		{own, []string{"http://localhost", "http://example.com"}, "", false},
		{own, nil, "cross-site", false},
	} {
		for _, target := range []string{"/healthz", "/v1/brains/b", "/v1/brains/b/documents"} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+target, nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Host, request.Header["Origin"] = test.host, test.origins
			if test.site != "" {
				request.Header.Set("Sec-Fetch-Site", test.site)
			}
			if test.host == "localhoſt" { // a client would encode it
				if foreign(request) == "" {
					t.Error("a letter like s is s")
				}
				continue
			}
			got := send(t, request)
			if test.served {
				expectStatus(t, got, http.StatusOK)
			} else {
				expectProblem(t, target+" "+test.host, got, http.StatusForbidden, "loopback")
			}
		}
	}
}

func TestForeignRequestHasNoEffect(t *testing.T) {
	server := newTestServer(t, nil, func(a *API) { a.Loopback = true })
	request, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, server.URL+"/v1/brains/b", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Origin", "https://example.com")
	request.Header.Set("X-Confirm-Delete", "yes")
	expectStatus(t, send(t, request), http.StatusForbidden)
	expectStatus(t, ask(t, server, http.MethodGet, "/v1/brains/b", ""), http.StatusOK)
}

func TestTokenOrOtherAddressAllowsEveryOrigin(t *testing.T) {
	for name, set := range map[string]func(*API){
		"token":   func(a *API) { a.Loopback, a.Token = true, "hush" },
		"address": func(*API) {},
	} {
		server := newTestServer(t, nil, set)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/version", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = "example.com"
		request.Header = http.Header{"Origin": {"null"}, "Authorization": {"Bearer hush"}}
		if got := send(t, request); got.status != http.StatusOK {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
