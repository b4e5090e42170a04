package reader

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	"memoryd/internal/llm"
	"memoryd/internal/problem"
	"memoryd/internal/prompt"
	"memoryd/internal/vectortest"
)

func TestFake(t *testing.T) {
	var vectors struct {
		Cases []struct {
			Question string
			Chunks   []string
			Answer   string
			Source   *int
			Deltas   []string
		}
	}
	vectortest.Load(t, "reader", &vectors)
	for _, test := range vectors.Cases {
		question := Question{Text: test.Question}
		for _, text := range test.Chunks {
			question.Notes = append(question.Notes, prompt.Note{Text: text})
		}
		want := Answer{Text: test.Answer}
		if test.Source != nil {
			want.Cited = []int{*test.Source}
		}
		var deltas []string
		got, err := Fake{}.Read(t.Context(), question, func(delta string) error {
			deltas = append(deltas, delta)
			return nil
		})
		if err != nil || !reflect.DeepEqual(got, want) || !slices.Equal(deltas, test.Deltas) {
			t.Errorf("%q: %+v in %q, %v; want %+v in %q", test.Question, got, deltas, err, want, test.Deltas)
		}
	}
}

func TestFakeStopsWithItsReader(t *testing.T) {
	gone := errors.New("gone")
	_, err := Fake{}.Read(t.Context(), Question{}, func(string) error { return gone })
	if !errors.Is(err, gone) {
		t.Errorf("Read = %v", err)
	}
}

// model replies with its lines and records the prompts.
type model struct {
	lines []string
	asked llm.Prompt
}

func (m *model) Stream(_ context.Context, p llm.Prompt, emit func(string) error) (*llm.Usage, error) {
	m.asked = p
	for _, line := range m.lines {
		if err := emit(line); err != nil {
			return nil, err
		}
	}
	return &llm.Usage{InputTokens: 3, OutputTokens: 2}, nil
}

func (m *model) Complete(context.Context, llm.Prompt) (string, error) { panic("not asked for") }

func TestAnswerWithoutTextIsAFailure(t *testing.T) {
	for _, lines := range [][]string{nil, {" ", "\n"}} {
		_, err := LLM{Model: &model{lines: lines}}.Read(t.Context(), Question{}, func(string) error { return nil })
		var failure *problem.Error
		if !errors.As(err, &failure) || failure.Code != problem.BadGateway {
			t.Errorf("%q: %v", lines, err)
		}
	}
}

func TestLLM(t *testing.T) {
	m := &model{lines: []string{"Ilse ", "[2]", "[1]."}}
	question := Question{
		Text:  "Who?",
		Date:  "2024-06-01",
		Mode:  prompt.Augmented,
		Notes: []prompt.Note{{Path: "a.md", Text: "x"}, {Path: "b.md", Title: "B", Text: "y"}},
	}
	answer, err := LLM{Model: m, DefaultModel: "usual"}.Read(t.Context(), question, func(string) error { return nil })
	want := Answer{Text: "Ilse [2][1].", Cited: []int{1, 0}, Usage: &llm.Usage{InputTokens: 3, OutputTokens: 2}}
	if err != nil || !reflect.DeepEqual(answer, want) {
		t.Errorf("Read = %+v, %v", answer, err)
	}
	wantAsked := llm.Prompt{
		Model:  "usual",
		System: prompt.System(prompt.Augmented),
		User:   prompt.User(prompt.Augmented, "Who?", "2024-06-01", question.Notes),
	}
	if m.asked != wantAsked {
		t.Errorf("asked %+v", m.asked)
	}
	question.Model = "special"
	if _, err := (LLM{Model: m, DefaultModel: "usual"}).Read(t.Context(), question, func(string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if m.asked.Model != "special" {
		t.Errorf("the question's model goes first, and %s was asked", m.asked.Model)
	}
}
