// Command driver drives go-sse for `memconform client`, behind net/http as its README shows. What the
// library yields is passed on as it is: only that shows what the library does. sdks/DRIVER.md
// describes the lines.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"
	"unicode/utf8"

	"github.com/tmaxmax/go-sse"
)

type command struct {
	ID          int             `json:"id"`
	BaseURL     string          `json:"baseUrl"`
	Brain       string          `json:"brain"`
	Body        json.RawMessage `json:"body"`
	Token       *string         `json:"token"`
	DeadlineMs  int             `json:"deadlineMs"`
	CancelAfter int             `json:"cancelAfter"`
}

type line map[string]any

// Redirects are not followed: net/http would send a GET behind 301 and 302, and a token to any port of a host.
var client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

func failure(kind, message string) line {
	return line{"error": line{"kind": kind, "message": message}}
}

// ask asks a question and returns the last line of the call, without its id.
func ask(c command, write func(line)) line {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(c.DeadlineMs)*time.Millisecond)
	defer cancel()
	base, err := url.Parse(c.BaseURL)
	if err != nil {
		return failure("unknown", err.Error())
	}
	target := base.JoinPath("v1/brains", c.Brain, "ask").String()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(c.Body))
	if err != nil {
		return failure("unknown", err.Error())
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "text/event-stream")
	if c.Token != nil {
		request.Header.Set("Authorization", "Bearer "+*c.Token)
	}
	response, err := client.Do(request)
	if err != nil {
		return failure(kindOf(err, "connection"), err.Error())
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		var problem struct {
			Code string `json:"code"`
		}
		_ = json.NewDecoder(response.Body).Decode(&problem) // the status is enough
		return line{"error": line{"kind": "http", "status": response.StatusCode, "code": problem.Code}}
	}
	if err := sse.DefaultValidator(response); err != nil {
		return failure("protocol", err.Error())
	}
	count := 0
	// The contract has events of up to 8 MiB; the library's own limit is 64 KiB.
	for event, err := range sse.Read(response.Body, &sse.ReadConfig{MaxEventSize: 16 << 20}) {
		if err != nil {
			return failure(kindOf(err, "cut"), err.Error())
		}
		switch event.Type {
		case "retrieve", "answer_delta", "citation", "error", "done":
		default:
			continue
		}
		var data struct {
			OK   any    `json:"ok"`
			Code string `json:"code"`
		}
		if err := json.Unmarshal([]byte(event.Data), &data); err != nil || event.Data == "null" || !utf8.ValidString(event.Data) {
			return failure("protocol", fmt.Sprintf("data of %s: %v", event.Type, err))
		}
		if event.Type == "error" || event.Type == "done" && data.OK != true {
			return line{"error": line{"kind": "daemon", "code": data.Code}}
		}
		write(line{"id": c.ID, "event": event.Type, "data": json.RawMessage(event.Data)})
		count++
		if event.Type == "done" {
			return line{"ok": nil}
		}
		if count == c.CancelAfter {
			return line{"cancelled": true}
		}
	}
	return failure("cut", "the stream ended before done")
}

// kindOf names an error of net/http or the library in the words of the contract.
func kindOf(err error, otherwise string) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, bufio.ErrTooLong):
		return "protocol"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "cut"
	}
	return otherwise
}

func main() {
	output := json.NewEncoder(os.Stdout)
	output.SetEscapeHTML(false)
	write := func(l line) { _ = output.Encode(l) } // memconform sees that a line is missing
	write(line{"driver": "go-sse 0.12.0", "protocol": 1, "claims": []string{"ask", "token", "deadline", "cancel"}})
	for input := json.NewDecoder(os.Stdin); ; {
		var c command
		if err := input.Decode(&c); err != nil {
			return
		}
		last := ask(c, write)
		last["id"] = c.ID
		write(last)
	}
}
