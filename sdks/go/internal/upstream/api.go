package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"github.com/tmaxmax/go-sse"

	"memoryd/internal/wire"
)

// API is a Service that is sent JSON. The clients of the vendors do what it does, and take a fifth of the
// time in which this daemon is compiled.
type API struct {
	Service
	address string
	headers map[string]string
	client  *retryablehttp.Client
}

// NewAPI returns the API at an address, with the headers that each request has.
func NewAPI(service Service, address string, headers map[string]string) API {
	client := retryablehttp.NewClient()
	client.HTTPClient = &http.Client{Transport: listening{http.DefaultTransport}}
	client.RetryMax = maxRetries
	client.RetryWaitMin = 250 * time.Millisecond
	client.RetryWaitMax = 2 * time.Second
	client.ErrorHandler = retryablehttp.PassthroughErrorHandler
	client.Logger = nil
	return API{service, address, headers, client}
}

// OpenAI returns the API of OpenAI, or of a service that takes its key as OpenAI does; an empty address is
// OpenAI's. A service without a key is sent none.
func OpenAI(service Service, address string) API {
	if address == "" {
		address = "https://api.openai.com/v1"
	}
	headers := map[string]string{}
	if service.Key != "" {
		headers["Authorization"] = "Bearer " + service.Key
	}
	return NewAPI(service, address, headers)
}

// Post returns the body of the response to a request below the address. Any but a success is an error.
func (a API) Post(ctx context.Context, path string, body any) (io.ReadCloser, error) {
	address, err := url.Parse(a.address)
	if err != nil {
		return nil, err
	}
	if path != "" {
		address = address.JoinPath(path)
	}
	content, err := wire.Marshal(body)
	if err != nil {
		return nil, err
	}
	request, err := retryablehttp.NewRequestWithContext(ctx, http.MethodPost, address.String(), content)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	for name, value := range a.headers {
		request.Header.Set(name, value)
	}
	response, err := a.client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		defer func() { _ = response.Body.Close() }()
		return nil, fmt.Errorf("answered %d: %s", response.StatusCode, messageOf(response.Body))
	}
	return response.Body, nil
}

// PostFor decodes the response into a value.
func (a API) PostFor(ctx context.Context, path string, body, into any) error {
	response, err := a.Post(ctx, path, body)
	if err != nil {
		return err
	}
	defer func() { _ = response.Close() }()
	content, err := io.ReadAll(response)
	if err != nil {
		return err
	}
	if err := wire.Unmarshal(content, into); err != nil {
		return fmt.Errorf("cannot decode the answer: %w", err)
	}
	return nil
}

// messageOf returns what the body of an error says.
func messageOf(body io.Reader) string {
	content, _ := io.ReadAll(io.LimitReader(body, 64<<10))
	refusal := wire.Value[struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}](content)
	return cmp.Or(refusal.Error.Message, string(content))
}

// longestEvent is a limit of the size of an event, in bytes; the default is 64 KiB.
const longestEvent = 8 << 20

// Events yields the data of a stream's events. One without data is none, nor is an incomplete one at the
// end.
func Events(stream io.Reader) func(func(data string, err error) bool) {
	return func(yield func(string, error) bool) {
		for event, err := range sse.Read(stream, &sse.ReadConfig{MaxEventSize: longestEvent}) {
			if err == nil && event.Data == "" {
				continue
			}
			if errors.Is(err, sse.ErrUnexpectedEOF) || !yield(event.Data, err) || err != nil {
				return
			}
		}
	}
}
