package upstream

import (
	"errors"
	"fmt"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// OpenAIOptions returns the options shared by all services of OpenAI's client. The services are
// built one by one, because openai.NewClient reads more of the environment than the contract names.
func OpenAIOptions(key, baseURL string) []option.RequestOption {
	options := []option.RequestOption{
		option.WithEnvironmentProduction(),
		option.WithAPIKey(key),
		option.WithHTTPClient(Client()),
		option.WithMaxRetries(MaxRetries),
	}
	if baseURL != "" {
		options = append(options, option.WithBaseURL(baseURL))
	}
	return options
}

// OpenAIError removes the URL, which the client includes in its errors.
func OpenAIError(err error) error {
	var refused *openai.Error
	if errors.As(err, &refused) {
		return fmt.Errorf("answered %d: %s", refused.StatusCode, refused.Message)
	}
	return err
}
