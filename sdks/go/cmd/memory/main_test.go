package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func lookup(variables map[string]string) environment {
	return func(name string) (string, bool) {
		value, set := variables[name]
		return value, set
	}
}

func TestExitCodes(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	root := t.TempDir()
	for _, test := range []struct {
		args   []string
		env    map[string]string
		exit   int
		stderr string
	}{
		{nil, nil, 2, "usage"},
		{[]string{"walk"}, nil, 2, "usage"},
		{[]string{"serve"}, nil, 2, "state folder"},
		{[]string{"serve", "--root", root, "more"}, nil, 2, "too many arguments"},
		{[]string{"serve", "--root", root, "--colour", "red"}, nil, 2, "colour"},
		{[]string{"serve", "--root", root, "--addr", "8080"}, nil, 2, "HOST:PORT"},
		{[]string{"serve", "--root", root}, map[string]string{"JB_LLM_PROVIDER": "gpt"}, 2, "JB_LLM_PROVIDER=gpt"},
		{[]string{"serve", "--root", root, "--addr", taken.Addr().String()}, nil, 1,
			"memory: cannot listen on " + taken.Addr().String() + ": address already in use"},
		{[]string{"serve", "--root", "/dev/null/x", "--addr", "127.0.0.1:0"}, nil, 1, "state folder"},
		{[]string{"serve", "--root", root, "--auth-token", ""}, nil, 2, "--auth-token or"},
		{[]string{"serve", "--root", root, "--auth-token", "hush hush"}, nil, 2, "visible ASCII"},
		{[]string{"serve", "--root", root, "--auth-token", "a", "hush"}, nil, 2, "too many"},
		{[]string{"serve", "--root", root}, map[string]string{"JB_AUTH_TOKEN": ""}, 2, "JB_AUTH_TOKEN"},
		{[]string{"serve", "--root", root}, map[string]string{"JB_AUTH_TOKEN": "hush\n"}, 2, "visible ASCII"},
		{[]string{"serve", "--root", root}, map[string]string{"JB_AUTH_TOKEN": "hushé"}, 2, "visible ASCII"},
		// The flag takes precedence over the variable, so that only the address is wrong here.
		{[]string{"serve", "--root", root, "--auth-token", "hush", "--addr", taken.Addr().String()},
			map[string]string{"JB_AUTH_TOKEN": ""}, 1, "cannot listen"},
		{[]string{"--help"}, nil, 0, ""},
	} {
		var stdout, stderr bytes.Buffer
		exit := run(t.Context(), test.args, lookup(test.env), &stdout, &stderr)
		if exit != test.exit || !strings.Contains(stderr.String(), test.stderr) || strings.Contains(stderr.String(), "hush") {
			t.Errorf("%q: %d, %q", test.args, exit, stderr.String())
		}
		if exit != 0 && stdout.Len() > 0 {
			t.Errorf("%q: on standard output: %q", test.args, stdout.String())
		}
	}
}

func TestServesUntilStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	reading, writing := io.Pipe()
	env := map[string]string{"JB_HOME": t.TempDir(), "JB_LLM_PROVIDER": "fake", "MEMCONFORM_RUN_ID": "run-7"}
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"serve", "--addr", "127.0.0.1:0"}, lookup(env), writing, io.Discard)
		_ = writing.Close()
	}()
	lines := bufio.NewScanner(reading)
	lines.Scan()
	url, found := strings.CutPrefix(lines.Text(), "listening on ")
	if !found {
		t.Fatalf("the first line is %q", lines.Text())
	}
	response, err := http.Get(url + "/version")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if !strings.Contains(string(body), `"runId":"run-7"`) {
		t.Errorf("%s", body)
	}
	stop()
	select {
	case exit := <-ended:
		if exit != 0 {
			t.Errorf("exit %d", exit)
		}
	case <-time.After(time.Minute):
		t.Fatal("it still runs")
	}
	if lines.Scan() {
		t.Errorf("more on standard output: %q", lines.Text())
	}
}
