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

func TestExitCodes(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	root := t.TempDir()
	for _, test := range []struct {
		args   []string
		env    string
		exit   int
		stderr string
	}{
		{nil, "", 2, "usage"},
		{[]string{"walk"}, "", 2, "usage"},
		{[]string{"serve"}, "", 2, "state folder"},
		{[]string{"serve", "--root", root, "more"}, "", 2, "more"},
		{[]string{"serve", "--root", root, "--colour", "red"}, "", 2, "colour"},
		{[]string{"serve", "--root", root, "--addr", "8080"}, "", 2, "HOST:PORT"},
		{[]string{"serve", "--root", root}, "gpt", 2, "JB_LLM_PROVIDER=gpt"},
		{[]string{"serve", "--root", root, "--addr", taken.Addr().String()}, "", 1,
			"memory: cannot listen on " + taken.Addr().String() + ": address already in use"},
		{[]string{"serve", "--root", "/dev/null/x", "--addr", "127.0.0.1:0"}, "", 1, "state folder"},
		{[]string{"--help"}, "", 0, ""},
	} {
		var stdout, stderr bytes.Buffer
		getenv := func(name string) string {
			if name == "JB_LLM_PROVIDER" {
				return test.env
			}
			return ""
		}
		exit := run(t.Context(), test.args, getenv, &stdout, &stderr)
		if exit != test.exit || !strings.Contains(stderr.String(), test.stderr) {
			t.Errorf("%q: %d, %q", test.args, exit, stderr.String())
		}
		if exit != 0 && stdout.Len() > 0 {
			t.Errorf("%q: on standard output: %q", test.args, stdout.String())
		}
	}
}

func TestItServesUntilItIsToldToStop(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	reading, writing := io.Pipe()
	env := map[string]string{"JB_HOME": t.TempDir(), "JB_LLM_PROVIDER": "fake", "MEMCONFORM_RUN_ID": "run-7"}
	ended := make(chan int, 1)
	go func() {
		getenv := func(name string) string { return env[name] }
		ended <- run(ctx, []string{"serve", "--addr", "127.0.0.1:0"}, getenv, writing, io.Discard)
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
	case <-time.After(3 * time.Second):
		t.Fatal("it still runs")
	}
	if lines.Scan() {
		t.Errorf("more on standard output: %q", lines.Text())
	}
}
