package api

import (
	"context"
	"log/slog"
	"net/http"

	"memoryd/internal/brain"
	"memoryd/internal/llm"
	"memoryd/internal/problem"
	"memoryd/internal/prompt"
	"memoryd/internal/reader"
	"memoryd/internal/retrieve"
	"memoryd/internal/wire"
)

type askBody struct {
	Question   *string `json:"question"`
	ReaderMode *string `json:"readerMode"`
	Model      *string `json:"model"`
	Retrieval
}

func (a *API) ask(w http.ResponseWriter, r *http.Request, b *brain.Brain) error {
	var body askBody
	if err := decode(r, &body); err != nil {
		return err
	}
	var c checker
	question := reader.Question{
		Text:  c.filled("question", body.Question),
		Date:  c.moment("questionDate", body.QuestionDate),
		Mode:  c.oneOf("readerMode", body.ReaderMode, prompt.Basic, prompt.Augmented),
		Model: wire.Or(body.Model, ""),
	}
	request := body.request(&c, question.Text, 5)
	if c.err != nil {
		return c.err
	}
	if a.Reader == nil {
		return problem.New(problem.BadGateway, "no reader is configured: start the daemon with JB_LLM_PROVIDER set")
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	go func() {
		select {
		case <-a.Stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	result, err := a.Retriever.Retrieve(ctx, b, request)
	if err != nil {
		return err
	}
	question.Notes = retrieve.Notes(result.Chunks)
	s := newStream(w)
	defer s.end()
	a.answer(ctx, s, request, result, question)
	return nil
}

type (
	retrieveEvent struct {
		Chunks []retrieve.Chunk `json:"chunks"`
		TopK   int              `json:"topK"`
		Mode   retrieve.Mode    `json:"mode"`
		Trace  retrieve.Trace   `json:"trace"`
	}
	deltaEvent struct {
		Text string `json:"text"`
	}
	citationEvent struct {
		ChunkID string  `json:"chunkId"`
		Path    string  `json:"path"`
		Title   string  `json:"title"`
		Score   float64 `json:"score"`
	}
	errorEvent struct {
		Code    problem.Code `json:"code"`
		Message string       `json:"message"`
	}
	doneEvent struct {
		OK     bool       `json:"ok"`
		Answer string     `json:"answer,omitzero"`
		Usage  *llm.Usage `json:"usage,omitzero"`
	}
)

// answer writes the whole stream. A failed write means that the client has disconnected.
func (a *API) answer(
	ctx context.Context, s *stream, request retrieve.Request, result retrieve.Result, question reader.Question,
) {
	err := s.send("retrieve", retrieveEvent{result.Chunks, request.TopK, result.Trace.EffectiveMode, result.Trace})
	if err != nil {
		return
	}
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	answer, err := a.Reader.Read(ctx, question, func(delta string) error {
		err := s.send("answer_delta", deltaEvent{delta})
		if err != nil {
			leave() // the client failed, not the reader
		}
		return err
	})
	if err != nil {
		p := problem.Of(err)
		if ctx.Err() == nil {
			slog.WarnContext(ctx, "answering failed", "code", string(p.Code), "error", err)
		} else {
			p = problem.New(problem.Internal, "the daemon is stopping")
		}
		_ = s.send("error", errorEvent{p.Code, p.Detail})
		_ = s.send("done", doneEvent{})
		return
	}
	for _, note := range answer.Cited {
		c := result.Chunks[note]
		_ = s.send("citation", citationEvent{c.ChunkID, c.Path, c.DisplayTitle(), c.Score})
	}
	_ = s.send("done", doneEvent{OK: true, Answer: answer.Text, Usage: answer.Usage})
}
