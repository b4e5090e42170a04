package llm

import (
	"context"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"memoryd/internal/upstream"
)

// OpenAI is a Model on the chat completions API, which Ollama serves too.
type OpenAI struct {
	service upstream.Service
	chat    openai.ChatCompletionService
}

// NewOpenAI returns a model; an empty baseURL means the client's default.
func NewOpenAI(service upstream.Service, baseURL string) *OpenAI {
	options := append(upstream.OpenAIOptions(service.Key, baseURL), option.WithMiddleware(dropComments))
	return &OpenAI{service: service, chat: openai.NewChatCompletionService(options...)}
}

// chatPiece is the part of a piece that is read. The client's own decoding turns numbers into text
// and ignores what is not an object.
type chatPiece struct {
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
	err := o.service.Call(ctx, func(ctx context.Context) (err error) {
		usage, err = o.stream(ctx, prompt, upstream.Passing(ctx, emit))
		return upstream.OpenAIError(err)
	})
	return usage, err
}

func (o *OpenAI) stream(ctx context.Context, prompt Prompt, emit func(string) error) (*Usage, error) {
	params := openAIParams(prompt)
	params.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
	stream := o.chat.NewStreaming(ctx, params)
	defer func() { _ = stream.Close() }()
	var usage *Usage
	finished := false
	// The usage comes in a separate piece, after the one that finishes the answer.
	for (!finished || usage == nil) && stream.Next() {
		var piece chatPiece
		if err := readPiece(stream.Current().RawJSON(), &piece); err != nil {
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
	}
	switch {
	case !finished && stream.Err() != nil:
		return nil, stream.Err()
	case !finished:
		return nil, errUnfinished
	}
	return usage, nil
}

func (o *OpenAI) Complete(ctx context.Context, prompt Prompt) (string, error) {
	var answer strings.Builder
	err := o.service.Call(ctx, func(ctx context.Context) error {
		completion, err := o.chat.New(ctx, openAIParams(prompt))
		if err != nil {
			return upstream.OpenAIError(err)
		}
		for _, choice := range completion.Choices {
			answer.WriteString(choice.Message.Content)
		}
		return nil
	})
	return answer.String(), err
}

func openAIParams(prompt Prompt) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model: prompt.Model,
		Messages: []openai.ChatCompletionMessageParamUnion{
			openai.SystemMessage(prompt.System),
			openai.UserMessage(prompt.User),
		},
	}
}
