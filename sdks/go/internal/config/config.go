// Package config reads a daemon's configuration from the environment.
package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The providers that the contract names.
const (
	None      = "none"
	Fake      = "fake"
	OpenAI    = "openai"
	Anthropic = "anthropic"
	Ollama    = "ollama"
	HTTP      = "http"
	LLM       = "llm"
)

const (
	defaultTimeout        = 30 * time.Second
	defaultRequestTimeout = 60 * time.Second
	maxTimeout            = 1_000_000 * time.Second
	defaultOllamaHost     = "127.0.0.1"
	defaultOllamaPort     = "11434"
)

// decimal is the form of a timeout; ParseFloat also accepts signs, exponents and underscores.
var decimal = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)

// Config is a validated configuration: consistent, and complete for the providers it names.
type Config struct {
	LLM    Provider
	Embed  Provider
	Rerank Provider

	QueryPrefix string
	Timeout     time.Duration // the longest silence allowed to an upstream
	// RequestTimeout limits the time in which the head of a request arrives, and then its body.
	RequestTimeout time.Duration
	RunID          string
}

// Provider is a service and what is needed to call it. Model and URL may be empty if the service or
// its client has a default, and Key if the service needs none.
type Provider struct {
	Name  string
	Model string
	URL   string
	Key   string
}

// FromEnv reads the variables. Its errors are meant for people and never contain a key.
func FromEnv(getenv func(string) string) (Config, error) {
	e := environment{getenv: getenv}
	config := Config{
		LLM:         e.provider("JB_LLM_PROVIDER", "JB_LLM_MODEL", Fake, OpenAI, Anthropic, Ollama),
		Embed:       e.provider("JB_EMBED_PROVIDER", "JB_EMBED_MODEL", Fake, OpenAI, Ollama),
		QueryPrefix: getenv("JB_EMBED_QUERY_PREFIX"),
		Timeout:     e.seconds("JB_UPSTREAM_TIMEOUT", defaultTimeout),

		RequestTimeout: e.seconds("JB_REQUEST_TIMEOUT", defaultRequestTimeout),
		RunID:          getenv("MEMCONFORM_RUN_ID"),
	}
	config.Rerank = e.rerank(config.LLM)
	return config, e.err
}

// environment reads variables and remembers the first error.
type environment struct {
	getenv func(string) string
	err    error
}

func (e *environment) refuse(format string, args ...any) {
	if e.err == nil {
		e.err = fmt.Errorf(format, args...)
	}
}

func (e *environment) choice(variable string, known ...string) string {
	value := e.getenv(variable)
	if value == "" {
		return None
	}
	known = append([]string{None}, known...)
	if !slices.Contains(known, value) {
		e.refuse("%s=%s: this daemon knows %s", variable, value, strings.Join(known, ", "))
	}
	return value
}

func (e *environment) required(variable, neededBy string) string {
	value := e.getenv(variable)
	if value == "" {
		e.refuse("%s is not set, and %s needs it", variable, neededBy)
	}
	return value
}

// address reads an absolute HTTP URL; it is empty if the variable is.
func (e *environment) address(variable string) string {
	value := e.getenv(variable)
	if value == "" {
		return ""
	}
	parsed, err := url.Parse(value)
	if err != nil || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Host == "" {
		// The value is not repeated: a URL may contain a password.
		e.refuse("%s is no http(s) address", variable)
	}
	return value
}

func (e *environment) provider(variable, modelVariable string, known ...string) Provider {
	name := e.choice(variable, known...)
	if name == None || name == Fake {
		return Provider{Name: name}
	}
	provider := Provider{Name: name, Model: e.required(modelVariable, variable+"="+name)}
	switch name {
	case OpenAI:
		provider.Key = e.required("OPENAI_API_KEY", name)
		provider.URL = e.address("OPENAI_BASE_URL")
	case Anthropic:
		provider.Key = e.required("ANTHROPIC_API_KEY", name)
		provider.URL = e.address("ANTHROPIC_BASE_URL")
	case Ollama:
		provider.URL = e.ollamaURL()
	}
	return provider
}

func (e *environment) ollamaURL() string {
	host := e.getenv("OLLAMA_HOST")
	if host == "" {
		host = defaultOllamaHost
	}
	bare := !strings.Contains(host, "://")
	if bare {
		host = "http://" + host
	}
	parsed, err := url.Parse(host)
	if err != nil || parsed.Hostname() == "" {
		e.refuse("OLLAMA_HOST is neither host, host:port nor an address")
		return ""
	}
	if bare && parsed.Port() == "" {
		parsed.Host = net.JoinHostPort(parsed.Hostname(), defaultOllamaPort)
	}
	return strings.TrimRight(parsed.String(), "/") + "/v1"
}

func (e *environment) rerank(llm Provider) Provider {
	provider := Provider{
		Name:  e.choice("JB_RERANK_PROVIDER", HTTP, LLM),
		Model: e.getenv("JB_RERANK_MODEL"),
	}
	switch provider.Name {
	case HTTP:
		e.required("JB_RERANK_URL", "JB_RERANK_PROVIDER=http")
		provider.URL = e.address("JB_RERANK_URL")
		provider.Key = e.getenv("JB_RERANK_API_KEY")
	case LLM:
		if llm.Name == None || llm.Name == Fake {
			e.refuse("JB_RERANK_PROVIDER=llm: JB_LLM_PROVIDER=%s is no language model", llm.Name)
		}
		if provider.Model == "" {
			provider.Model = llm.Model
		}
	}
	return provider
}

func (e *environment) seconds(variable string, missing time.Duration) time.Duration {
	value := e.getenv(variable)
	if value == "" {
		return missing
	}
	seconds, err := strconv.ParseFloat(value, 64)
	if !decimal.MatchString(value) || err != nil || seconds <= 0 || seconds > maxTimeout.Seconds() {
		e.refuse("%s=%s: must be a decimal number of seconds, more than 0 and at most 1000000", variable, value)
		return missing
	}
	return time.Duration(seconds * float64(time.Second))
}

// CheckToken requires one or more visible ASCII characters; its error does not repeat the token.
func CheckToken(token string) error {
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("a token must consist of 1 or more visible ASCII characters")
	}
	return nil
}

// CheckAddress requires the form HOST:PORT.
func CheckAddress(address string) error {
	host, port, _ := net.SplitHostPort(address) // both are empty if it fails
	if number, err := strconv.ParseUint(port, 10, 16); host == "" || err != nil || strconv.FormatUint(number, 10) != port {
		return fmt.Errorf("%q is not HOST:PORT", address)
	}
	return nil
}
