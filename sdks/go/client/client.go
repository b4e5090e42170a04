// Package client calls a memory daemon: Ask streams the events of an answer, Search and Ingest return one response.
package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"
)

// maxProblemBytes is how much of the body of an error is read.
const maxProblemBytes = 1 << 20

var (
	errSilence  = &Error{Kind: Timeout, Message: "no byte arrived for longer than the limit"}
	errDeadline = &Error{Kind: Timeout, Message: "the call took longer than its deadline"}
)

// Options are the settings of a Client; the zero value is usable.
type Options struct {
	// Token is sent as Authorization: Bearer, unless it is empty.
	Token string
	// Idle is the longest silence of a response; 0 means a minute.
	Idle time.Duration
	// Deadline is the longest that a call may take, with its repetitions; 0 means five minutes.
	Deadline time.Duration
	// Retries is how often a call is repeated that the daemon has refused with 429 or 503 and Retry-After; 0 means
	// twice, and -1 never.
	// No other failure is repeated.
	Retries int
}

// A Client calls one daemon. It may be used by several goroutines.
type Client struct {
	prefix  string // of a URL, before /v1
	query   string
	options Options
	pooled  *http.Transport
	fresh   *http.Transport
}

// An Event is a part of an answer.
type Event struct {
	Name string          // retrieve, answer_delta, citation or done
	Data json.RawMessage // an object
}

// New returns a client of the daemon at baseURL, whose path and query are kept by each request. It fails if baseURL is
// not a URL of HTTP.
func New(baseURL string, options Options) (*Client, error) {
	base, err := url.Parse(baseURL)
	if err != nil {
		return nil, err
	}
	if base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("%q is not a URL of HTTP", baseURL)
	}
	query := base.RawQuery
	base.RawQuery, base.ForceQuery, base.Fragment = "", false, ""
	options.Idle = cmp.Or(options.Idle, time.Minute)
	options.Deadline = cmp.Or(options.Deadline, 5*time.Minute)
	options.Retries = cmp.Or(options.Retries, 2)
	client := &Client{
		prefix:  strings.TrimRight(base.String(), "/"),
		query:   query,
		options: options,
		pooled: &http.Transport{
			Proxy:              http.ProxyFromEnvironment,
			ForceAttemptHTTP2:  true,
			IdleConnTimeout:    time.Minute,
			DisableCompression: true, // It would hide bytes that arrive from the limit of silence.
		},
	}
	client.fresh = client.pooled.Clone()
	client.fresh.DisableKeepAlives = true
	return client, nil
}

// Ask yields the events of an answer as they come; the last one is done. If the answer is not complete, the last pair
// has an error instead, whatever has been yielded: an *Error, or that of ctx. Each loop is a call, and its end, such as a
// break, ends the request. request is the value of the JSON object that is sent.
func (c *Client) Ask(ctx context.Context, brain string, request any) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		call, err := c.send(ctx, c.pooled, brain, "ask", "text/event-stream", request)
		if err != nil {
			yield(Event{}, err)
			return
		}
		defer call.end()
		events := newEventReader(call.body)
		for {
			event, err := events.next()
			if err != nil {
				yield(Event{}, call.failure(Cut, "the answer ended before done", err))
				return
			}
			switch event.Name {
			case "retrieve", "answer_delta", "citation", "error", "done":
			default:
				continue
			}
			call.idle.Stop() // The program may take its time.
			if err := validateEvent(event); err != nil {
				yield(Event{}, err)
				return
			}
			if !yield(event, nil) || event.Name == "done" {
				return
			}
		}
	}
}

// Search returns the body of a search. It fails with an *Error, or with that of ctx. request is as in Ask.
func (c *Client) Search(ctx context.Context, brain string, request any) (json.RawMessage, error) {
	return c.fetch(ctx, c.pooled, brain, "search", request)
}

// Ingest stores a document and returns the body of the response. It fails as Search does; the document may be stored
// nevertheless. request is as in Ask.
func (c *Client) Ingest(ctx context.Context, brain string, request any) (json.RawMessage, error) {
	// A kept connection may end while the request is on its way, and it must not be sent again.
	return c.fetch(ctx, c.fresh, brain, "ingest/file", request)
}

// CloseIdleConnections closes the connections that no call uses.
func (c *Client) CloseIdleConnections() { c.pooled.CloseIdleConnections() }

func (c *Client) fetch(
	ctx context.Context, transport *http.Transport, brain, route string, request any,
) (json.RawMessage, error) {
	call, err := c.send(ctx, transport, brain, route, "application/json", request)
	if err != nil {
		return nil, err
	}
	defer call.end()
	body, err := io.ReadAll(call.body)
	if err != nil {
		return nil, call.failure(Cut, "the response broke off", err)
	}
	if _, err := decodeObject(body); err != nil {
		return nil, err
	}
	return body, nil
}

// call is one call, with the limits that end it.
type call struct {
	ctx      context.Context
	cancel   context.CancelCauseFunc
	idle     *time.Timer
	limit    time.Duration
	response *http.Response
	body     io.Reader
}

// watch returns a reader that grants each read the whole limit of silence.
func (c *call) watch(reader io.Reader) io.Reader { return &watchedReader{reader, c} }

type watchedReader struct {
	io.Reader
	call *call
}

func (r *watchedReader) Read(buffer []byte) (int, error) {
	r.call.idle.Reset(r.call.limit)
	return r.Reader.Read(buffer)
}

// end ends the request, if it has not ended.
func (c *call) end() {
	c.cancel(nil)
	c.idle.Stop()
	if c.response != nil {
		_ = c.response.Body.Close()
	}
}

// failure is why the call ended: the cause of its context, or else err.
func (c *call) failure(kind Kind, message string, err error) error {
	if cause := context.Cause(c.ctx); cause != nil {
		return cause
	}
	return wrap(kind, message, err)
}

// send returns a call with a success of the route's media type, whose body has not been read.
func (c *Client) send(
	parent context.Context, transport *http.Transport, brain, route, media string, request any,
) (*call, error) {
	content, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	deadline, stop := context.WithTimeoutCause(parent, c.options.Deadline, errDeadline)
	ctx, cancel := context.WithCancelCause(deadline)
	call := &call{
		ctx:    ctx,
		cancel: func(cause error) { cancel(cause); stop() },
		idle:   time.AfterFunc(c.options.Idle, func() { cancel(errSilence) }),
		limit:  c.options.Idle,
	}
	for attempt := 0; ; attempt++ {
		err := c.attempt(call, transport, brain, route, media, content)
		if err == nil {
			return call, nil
		}
		delay, isRefused := call.retryAfter()
		end, _ := ctx.Deadline()
		if !isRefused || attempt >= c.options.Retries || ctx.Err() != nil || time.Now().Add(delay).After(end) {
			call.end()
			return nil, err
		}
		_ = call.response.Body.Close()
		call.idle.Stop()
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			call.end()
			return nil, context.Cause(ctx)
		}
	}
}

// attempt sends the request and waits for the head of the response.
func (c *Client) attempt(call *call, transport *http.Transport, brain, route, media string, content []byte) error {
	call.idle.Reset(call.limit)
	target := c.prefix + "/v1/brains/" + url.PathEscape(brain) + "/" + route
	if c.query != "" {
		target += "?" + c.query
	}
	body := func() (io.ReadCloser, error) { return io.NopCloser(call.watch(bytes.NewReader(content))), nil }
	reader, _ := body()
	reused := false
	request, err := http.NewRequestWithContext(httptrace.WithClientTrace(call.ctx, &httptrace.ClientTrace{
		Got1xxResponse: func(int, textproto.MIMEHeader) error {
			call.idle.Reset(call.limit)
			return nil
		},
		GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused },
	}), http.MethodPost, target, reader)
	if err != nil {
		return err
	}
	request.ContentLength, request.GetBody = int64(len(content)), body
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", media)
	request.Header.Set("Accept-Encoding", "identity")
	if c.options.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.options.Token)
	}
	// Without a value it is not sent, but allows the transport to send the request again if a kept connection has
	// ended; connections of ingest are not kept.
	request.Header["Idempotency-Key"] = nil
	// The transport follows no redirect, and so sends the token to no other origin.
	call.response, err = transport.RoundTrip(request)
	if reused && (errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)) && call.ctx.Err() == nil {
		// The transport sends no request again whose head it could still write to a connection that has ended.
		return c.attempt(call, c.fresh, brain, route, media, content)
	}
	if err != nil {
		return call.failure(Connection, "no response", err)
	}
	call.body = call.watch(call.response.Body)
	if call.response.StatusCode/100 != 2 {
		return call.problem()
	}
	return call.validateHead(media)
}

// problem is the error of a response that is no success, whatever its body is.
func (c *call) problem() error {
	status := c.response.StatusCode
	failure := &Error{Kind: HTTP, Status: status, Message: fmt.Sprintf("the daemon answered %d", status)}
	if body, err := io.ReadAll(io.LimitReader(c.body, maxProblemBytes)); err == nil {
		if problem, err := decodeObject(body); err == nil {
			_ = json.Unmarshal(problem["code"], &failure.Code) // It may be missing, or no string.
		}
	}
	return failure
}

func (c *call) validateHead(media string) error {
	header := c.response.Header
	if encoding := header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return &Error{Kind: Protocol, Message: fmt.Sprintf("the response is encoded as %q", encoding)}
	}
	given, _, _ := strings.Cut(header.Get("Content-Type"), ";")
	if !strings.EqualFold(strings.TrimSpace(given), media) {
		return &Error{Kind: Protocol, Message: fmt.Sprintf("the response is %q, not %s", given, media)}
	}
	return nil
}

// retryAfter returns when the daemon allows a call to be repeated that it has refused; false if it does not.
func (c *call) retryAfter() (time.Duration, bool) {
	if c.response == nil {
		return 0, false
	}
	if status := c.response.StatusCode; status != http.StatusTooManyRequests && status != http.StatusServiceUnavailable {
		return 0, false
	}
	value := c.response.Header.Get("Retry-After")
	// More than 31 bits are past every deadline, and too much for a Duration.
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	moment, err := http.ParseTime(value)
	return time.Until(moment), err == nil
}

func validateEvent(event Event) error {
	data, err := decodeObject(event.Data)
	if err != nil {
		return err
	}
	switch {
	case event.Name == "error":
		failure := &Error{Kind: Daemon, Message: "the answer failed: " + string(event.Data)}
		_ = json.Unmarshal(data["code"], &failure.Code)
		return failure
	case event.Name == "done" && string(data["ok"]) != "true":
		return &Error{Kind: Daemon, Message: "the answer failed"}
	}
	return nil
}

func decodeObject(text []byte) (map[string]json.RawMessage, error) {
	if !utf8.Valid(text) {
		return nil, &Error{Kind: Protocol, Message: "not UTF-8"}
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, wrap(Protocol, "not an object of JSON", err)
	}
	if object == nil {
		return nil, &Error{Kind: Protocol, Message: "null is not an object"}
	}
	return object, nil
}
