package llm

import (
	"context"
	"strings"

	"memoryd/internal/upstream"
)

// OpenAI is a Model on the chat completions API, which Ollama serves too.
type OpenAI struct{ api upstream.API }

// NewOpenAI returns a model; an empty baseURL means OpenAI's.
func NewOpenAI(service upstream.Service, baseURL string) *OpenAI {
	return &OpenAI{upstream.OpenAI(service, baseURL)}
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type chatRequest struct {
	Model         string         `json:"model"`
	Messages      []message      `json:"messages"`
	Stream        bool           `json:"stream,omitzero"`
	StreamOptions *streamOptions `json:"stream_options,omitzero"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

func newChatRequest(prompt Prompt) chatRequest {
	return chatRequest{Model: prompt.Model, Messages: []message{{"system", prompt.System}, {"user", prompt.User}}}
}

// chatPiece is the part of a piece that is read.
type chatPiece struct {
	failure
	Choices []struct {
		Delta struct {
			Content string `json:"content"`
		} `json:"delta"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		PromptTokens     int64 `json:"prompt_tokens"`
		CompletionTokens int64 `json:"completion_tokens"`
	} `json:"usage"`
}

func (o *OpenAI) Stream(ctx context.Context, prompt Prompt, emit func(string) error) (*Usage, error) {
	var usage *Usage
	err := o.api.Call(ctx, func(ctx context.Context) (err error) {
		usage, err = o.stream(ctx, prompt, upstream.Passing(ctx, emit))
		return err
	})
	return usage, err
}

func (o *OpenAI) stream(ctx context.Context, prompt Prompt, emit func(string) error) (usage *Usage, err error) {
	request := newChatRequest(prompt)
	request.Stream, request.StreamOptions = true, &streamOptions{IncludeUsage: true}
	stream, err := o.api.Post(ctx, "chat/completions", request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stream.Close() }()
	finished := false
	for data, err := range upstream.Events(stream) {
		if finished && (err != nil || data == endOfChat) {
			break
		}
		var piece chatPiece
		if err := readPiece(data, err, &piece); err != nil {
			return nil, err
		}
		if piece.Usage != nil {
			usage = &Usage{piece.Usage.PromptTokens, piece.Usage.CompletionTokens}
		}
		for _, choice := range piece.Choices {
			if choice.Delta.Content != "" {
				if err := emit(choice.Delta.Content); err != nil {
					return nil, err
				}
			}
			finished = finished || choice.FinishReason != ""
		}
		// The usage comes in a separate piece, after the one that finishes the answer.
		if finished && usage != nil {
			break
		}
	}
	if !finished {
		return nil, errUnfinished
	}
	return usage, nil
}

// endOfChat is the data of the last event.
const endOfChat = "[DONE]"

func (o *OpenAI) Complete(ctx context.Context, prompt Prompt) (string, error) {
	var completion struct {
		Choices []struct {
			Message struct {
				Content string `json:"content"`
			} `json:"message"`
		} `json:"choices"`
	}
	err := o.api.Call(ctx, func(ctx context.Context) error {
		return o.api.PostFor(ctx, "chat/completions", newChatRequest(prompt), &completion)
	})
	var answer strings.Builder
	for _, choice := range completion.Choices {
		answer.WriteString(choice.Message.Content)
	}
	return answer.String(), err
}
