package config

import (
	"strings"
	"testing"
	"time"
)

func fromEnv(env map[string]string) (Config, error) {
	return FromEnv(func(name string) string { return env[name] })
}

func TestEmptyEnvironment(t *testing.T) {
	got, err := fromEnv(map[string]string{"OPENAI_API_KEY": "sk", "ANTHROPIC_API_KEY": "ak"})
	none := Provider{Name: None}
	// short limit: nothing is waited for
	want := Config{LLM: none, Embed: none, Rerank: none, Timeout: 30 * time.Second, RequestTimeout: time.Minute}
	if err != nil || got != want {
		t.Errorf("a key selects no provider: %+v, %v", got, err)
	}
}

func TestProviders(t *testing.T) {
	got, err := fromEnv(map[string]string{
		"JB_LLM_PROVIDER": "anthropic", "JB_LLM_MODEL": "reads", "ANTHROPIC_API_KEY": "ak",
		"JB_EMBED_PROVIDER": "openai", "JB_EMBED_MODEL": "embeds", "OPENAI_API_KEY": "sk",
		"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "JB_EMBED_QUERY_PREFIX": "query: ",
		"JB_RERANK_PROVIDER": "llm", "JB_UPSTREAM_TIMEOUT": "1.5", "JB_REQUEST_TIMEOUT": "2", "MEMCONFORM_RUN_ID": "run-7",
	})
	want := Config{
		LLM:         Provider{Name: Anthropic, Model: "reads", Key: "ak"},
		Embed:       Provider{Name: OpenAI, Model: "embeds", Key: "sk", URL: "http://127.0.0.1:9/v1"},
		Rerank:      Provider{Name: LLM, Model: "reads"},
		QueryPrefix: "query: ",
		Timeout:     1500 * time.Millisecond, // short limit: nothing is waited for

		RequestTimeout: 2 * time.Second, // short limit: the same
		RunID:          "run-7",
	}
	if err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestOllamaHost(t *testing.T) {
	for host, want := range map[string]string{
		"":                       "http://127.0.0.1:11434/v1",
		"10.0.0.1:7000":          "http://10.0.0.1:7000/v1",
		"https://models.example": "https://models.example/v1",
		"http://localhost:7000/": "http://localhost:7000/v1",
		"models":                 "http://models:11434/v1",
		"[::1]":                  "http://[::1]:11434/v1",
	} {
		got, err := fromEnv(map[string]string{
			"JB_EMBED_PROVIDER": "ollama", "JB_EMBED_MODEL": "m", "OLLAMA_HOST": host,
		})
		if err != nil || got.Embed.URL != want || got.Embed.Key != "" {
			t.Errorf("%q: %+v, %v", host, got.Embed, err)
		}
	}
}

func TestInvalidVariablesAreRefused(t *testing.T) {
	for _, test := range []struct {
		env  string
		want string
	}{
		{"JB_LLM_PROVIDER=gpt", "JB_LLM_PROVIDER=gpt: this daemon knows none, fake, openai"},
		{"JB_EMBED_PROVIDER=anthropic", "JB_EMBED_PROVIDER=anthropic"},
		{"JB_RERANK_PROVIDER=fake", "JB_RERANK_PROVIDER=fake"},
		{"JB_LLM_PROVIDER=openai OPENAI_API_KEY=k", "JB_LLM_MODEL is not set"},
		{"JB_LLM_PROVIDER=ollama", "JB_LLM_MODEL is not set"},
		{"JB_LLM_PROVIDER=openai JB_LLM_MODEL=m", "OPENAI_API_KEY is not set"},
		{"JB_LLM_PROVIDER=anthropic JB_LLM_MODEL=m", "ANTHROPIC_API_KEY is not set"},
		{"JB_EMBED_PROVIDER=openai OPENAI_API_KEY=k", "JB_EMBED_MODEL is not set"},
		{"JB_EMBED_PROVIDER=openai JB_EMBED_MODEL=m OPENAI_API_KEY=k OPENAI_BASE_URL=host:1", "OPENAI_BASE_URL"},
		{"JB_RERANK_PROVIDER=http", "JB_RERANK_URL is not set"},
		{"JB_RERANK_PROVIDER=http JB_RERANK_URL=nowhere", "JB_RERANK_URL"},
		{"JB_RERANK_PROVIDER=llm JB_LLM_PROVIDER=fake", "JB_LLM_PROVIDER=fake is no language model"},
		{"JB_UPSTREAM_TIMEOUT=0", "JB_UPSTREAM_TIMEOUT=0"},
		{"JB_REQUEST_TIMEOUT=0", "JB_REQUEST_TIMEOUT=0"},
		{"JB_UPSTREAM_TIMEOUT=NaN", "JB_UPSTREAM_TIMEOUT=NaN"},
		{"JB_UPSTREAM_TIMEOUT=1e300", "JB_UPSTREAM_TIMEOUT=1e300"},
		{"JB_UPSTREAM_TIMEOUT=soon", "JB_UPSTREAM_TIMEOUT=soon"},
		{"JB_UPSTREAM_TIMEOUT=+5", "JB_UPSTREAM_TIMEOUT=+5"},
		{"JB_UPSTREAM_TIMEOUT=1e3", "JB_UPSTREAM_TIMEOUT=1e3"},
		{"JB_UPSTREAM_TIMEOUT=1_0", "JB_UPSTREAM_TIMEOUT=1_0"},
		{"JB_UPSTREAM_TIMEOUT=1000000.5", "JB_UPSTREAM_TIMEOUT=1000000.5"},
		{"JB_LLM_PROVIDER=ollama JB_LLM_MODEL=m OLLAMA_HOST=:11434", "OLLAMA_HOST"},
	} {
		env := map[string]string{}
		for _, pair := range strings.Fields(test.env) {
			name, value, _ := strings.Cut(pair, "=")
			env[name] = value
		}
		if _, err := fromEnv(env); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.env, err)
		}
	}
}

func TestCheckAddress(t *testing.T) {
	for address, ok := range map[string]bool{
		"127.0.0.1:0": true, "[::1]:8080": true, "localhost:65535": true,
		"": false, "localhost": false, ":80": false, "a:b": false, "a:65536": false, "a:-1": false, "a:+1": false,
	} {
		if got := CheckAddress(address) == nil; got != ok {
			t.Errorf("CheckAddress(%q) is good: %v", address, got)
		}
	}
}
