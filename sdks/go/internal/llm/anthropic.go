package llm

import (
	"context"
	"strings"

	"memoryd/internal/upstream"
)

// anthropicMaxTokens is the maximum length of an answer, a required parameter of that API.
const anthropicMaxTokens = 1024

// Anthropic is a Model on the messages API.
type Anthropic struct{ api upstream.API }

// NewAnthropic returns a model; an empty baseURL means Anthropic's.
func NewAnthropic(service upstream.Service, baseURL string) *Anthropic {
	if baseURL == "" {
		baseURL = "https://api.anthropic.com"
	}
	headers := map[string]string{"X-Api-Key": service.Key, "Anthropic-Version": "2023-06-01"}
	return &Anthropic{upstream.NewAPI(service, baseURL, headers)}
}

type messagesRequest struct {
	Model     string    `json:"model"`
	MaxTokens int       `json:"max_tokens"`
	System    string    `json:"system"`
	Messages  []message `json:"messages"`
	Stream    bool      `json:"stream,omitzero"`
}

func newMessagesRequest(prompt Prompt) messagesRequest {
	return messagesRequest{
		Model: prompt.Model, MaxTokens: anthropicMaxTokens, System: prompt.System,
		Messages: []message{{"user", prompt.User}},
	}
}

type tokens struct {
	Input  int64 `json:"input_tokens"`
	Output int64 `json:"output_tokens"`
}

// messageEvent is the part of an event that is read.
type messageEvent struct {
	failure
	Type    string `json:"type"`
	Message struct {
		Usage *tokens `json:"usage"`
	} `json:"message"`
	Delta struct {
		Text string `json:"text"`
	} `json:"delta"`
	Usage *tokens `json:"usage"`
}

func (a *Anthropic) Stream(ctx context.Context, prompt Prompt, emit func(string) error) (*Usage, error) {
	var usage *Usage
	err := a.api.Call(ctx, func(ctx context.Context) (err error) {
		usage, err = a.stream(ctx, prompt, upstream.Passing(ctx, emit))
		return err
	})
	return usage, err
}

func (a *Anthropic) stream(ctx context.Context, prompt Prompt, emit func(string) error) (*Usage, error) {
	request := newMessagesRequest(prompt)
	request.Stream = true
	stream, err := a.api.Post(ctx, "v1/messages", request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stream.Close() }()
	var started, ended *tokens
	for data, err := range upstream.Events(stream) {
		var event messageEvent
		if err := readPiece(data, err, &event); err != nil {
			return nil, err
		}
		switch event.Type {
		case "message_start":
			started = event.Message.Usage
		case "content_block_delta":
			if event.Delta.Text == "" {
				continue
			}
			if err := emit(event.Delta.Text); err != nil {
				return nil, err
			}
		case "message_delta":
			ended = event.Usage
		case "message_stop":
			if started == nil || ended == nil {
				return nil, nil
			}
			return &Usage{InputTokens: started.Input, OutputTokens: ended.Output}, nil
		}
	}
	return nil, errUnfinished
}

func (a *Anthropic) Complete(ctx context.Context, prompt Prompt) (string, error) {
	var completion struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	err := a.api.Call(ctx, func(ctx context.Context) error {
		return a.api.PostFor(ctx, "v1/messages", newMessagesRequest(prompt), &completion)
	})
	var answer strings.Builder
	for _, block := range completion.Content {
		answer.WriteString(block.Text)
	}
	return answer.String(), err
}
