package llm

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"memoryd/internal/upstream"
)

// anthropicMaxTokens is the maximum length of an answer, a required parameter of that API.
const anthropicMaxTokens = 1024

// Anthropic is a Model on the messages API.
type Anthropic struct {
	service  upstream.Service
	messages anthropic.MessageService
}

// NewAnthropic returns a model; an empty baseURL means the client's default.
func NewAnthropic(service upstream.Service, baseURL string) *Anthropic {
	// The service is built without anthropic.NewClient, which reads more of the environment than
	// the contract names.
	options := []option.RequestOption{
		option.WithEnvironmentProduction(),
		option.WithAPIKey(service.Key),
		option.WithHTTPClient(upstream.Client()),
		option.WithMaxRetries(upstream.MaxRetries),
	}
	if baseURL != "" {
		options = append(options, option.WithBaseURL(baseURL))
	}
	return &Anthropic{service: service, messages: anthropic.NewMessageService(options...)}
}

type tokens struct {
	Input  int64 `json:"input_tokens"`
	Output int64 `json:"output_tokens"`
}

// messageEvent is the part of an event that is read, as strictly as OpenAI's pieces.
type messageEvent struct {
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
	err := a.service.Call(ctx, func(ctx context.Context) (err error) {
		usage, err = a.stream(ctx, prompt, upstream.Passing(ctx, emit))
		return anthropicError(err)
	})
	return usage, err
}

func (a *Anthropic) stream(ctx context.Context, prompt Prompt, emit func(string) error) (*Usage, error) {
	stream := a.messages.NewStreaming(ctx, anthropicParams(prompt))
	defer func() { _ = stream.Close() }()
	var started, ended *tokens
	for stream.Next() {
		var event messageEvent
		if err := readPiece(stream.Current().RawJSON(), &event); err != nil {
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
	if err := stream.Err(); err != nil {
		return nil, err
	}
	return nil, errUnfinished
}

func (a *Anthropic) Complete(ctx context.Context, prompt Prompt) (string, error) {
	var answer strings.Builder
	err := a.service.Call(ctx, func(ctx context.Context) error {
		message, err := a.messages.New(ctx, anthropicParams(prompt))
		if err != nil {
			return anthropicError(err)
		}
		for _, block := range message.Content {
			answer.WriteString(block.Text)
		}
		return nil
	})
	return answer.String(), err
}

func anthropicParams(prompt Prompt) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model:     anthropic.Model(prompt.Model),
		MaxTokens: anthropicMaxTokens,
		System:    []anthropic.TextBlockParam{{Text: prompt.System}},
		Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(prompt.User))},
	}
}

// anthropicError removes the URL, which the client includes in its errors.
func anthropicError(err error) error {
	var refused *anthropic.Error
	if errors.As(err, &refused) {
		return fmt.Errorf("answered %d: %s", refused.StatusCode, refused.RawJSON())
	}
	return err
}
