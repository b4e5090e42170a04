package brain

import (
	"slices"
	"strings"
	"testing"

	"memoryd/internal/vectortest"
)

func TestFrontMatterGivesTitleAndTags(t *testing.T) {
	var vectors struct {
		Cases []struct {
			Text, Body string
			Title      *string
			Tags       []string
		}
	}
	vectortest.Load(t, "frontmatter", &vectors)
	if len(vectors.Cases) == 0 {
		t.Fatal("no vectors")
	}
	for _, test := range vectors.Cases {
		doc, err := parseDocument("a.md", []byte(test.Text), Sidecar{})
		if err != nil {
			t.Fatal(err)
		}
		if (doc.Title == nil) != (test.Title == nil) || doc.Title != nil && *doc.Title != *test.Title {
			t.Errorf("the title of %q is %v", test.Text, doc.Title)
		}
		if !slices.Equal(doc.Tags, test.Tags) {
			t.Errorf("the tags of %q are %q, want %q", test.Text, doc.Tags, test.Tags)
		}
		if body := strings.Join(doc.Chunks, ""); body != test.Body {
			t.Errorf("the body of %q is %q, want %q", test.Text, body, test.Body)
		}
	}
}

func TestEmptyTagsOfTheRequestApply(t *testing.T) {
	content := "---\ntitle: Orchard\ntags: [fruit]\n---\nThe walnut stands."
	doc, err := parseDocument("a.md", []byte(content), parseSidecar([]byte(`{"title": "", "tags": []}`)))
	if err != nil {
		t.Fatal(err)
	}
	if doc.Title == nil || *doc.Title != "" || len(doc.Tags) != 0 {
		t.Errorf("title %v, tags %q", doc.Title, doc.Tags)
	}
}
