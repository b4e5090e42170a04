package daemon

import (
	"memoryd/internal/config"
	"memoryd/internal/embed"
	"memoryd/internal/llm"
	"memoryd/internal/reader"
	"memoryd/internal/rerank"
	"memoryd/internal/upstream"
)

// providers are the providers of a configuration; each may be nil.
type providers struct {
	embedder embed.Embedder
	reader   reader.Reader
	reranker rerank.Reranker
}

func newProviders(c config.Config) providers {
	var p providers
	switch c.Embed.Name {
	case config.Fake:
		p.embedder = embed.FeatureHash{}
	case config.OpenAI, config.Ollama:
		p.embedder = embed.NewOpenAI(service(c, "embedder", c.Embed), c.Embed.URL, c.Embed.Name, c.Embed.Model)
	}
	switch c.LLM.Name {
	case config.Fake:
		p.reader = reader.Fake{}
	case config.OpenAI, config.Ollama, config.Anthropic:
		p.reader = reader.LLM{Model: model(c, "reader"), DefaultModel: c.LLM.Model}
	}
	switch c.Rerank.Name {
	case config.HTTP:
		p.reranker = rerank.NewHTTP(service(c, "reranker", c.Rerank), c.Rerank.URL, c.Rerank.Model)
	case config.LLM:
		p.reranker = rerank.LLM{Model: model(c, "reranker"), ModelName: c.Rerank.Model}
	}
	return p
}

// model returns the configured language model for one of its uses.
func model(c config.Config, use string) llm.Model {
	if c.LLM.Name == config.Anthropic {
		return llm.NewAnthropic(service(c, use, c.LLM), c.LLM.URL)
	}
	return llm.NewOpenAI(service(c, use, c.LLM), c.LLM.URL)
}

func service(c config.Config, use string, p config.Provider) upstream.Service {
	return upstream.Service{Name: use + " " + p.Name, Key: p.Key, Timeout: c.Timeout}
}
