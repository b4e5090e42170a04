package api

import (
	"net/http"

	"memoryd/internal/brain"
	"memoryd/internal/problem"
)

type brainBody struct {
	BrainID     string  `json:"brainId"`
	Description *string `json:"description,omitzero"`
	Documents   int     `json:"documents"`
	Chunks      int     `json:"chunks"`
	Vectors     int     `json:"vectors"`
	Pending     int     `json:"pending"` // always 0: a document is indexed before it is acknowledged
}

func (a *API) listBrains(w http.ResponseWriter, _ *http.Request) error {
	ids, err := a.Store.IDs()
	if err != nil {
		return err
	}
	items := make([]map[string]string, len(ids))
	for i, id := range ids {
		items[i] = map[string]string{"brainId": id}
	}
	return reply(w, http.StatusOK, map[string]any{"items": items})
}

func (a *API) createBrain(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		BrainID     *string `json:"brainId"`
		Description *string `json:"description"`
	}
	if err := decode(r, &body); err != nil {
		return err
	}
	var c checker
	id := c.required("brainId", body.BrainID)
	if c.err != nil {
		return c.err
	}
	created, err := a.Store.Create(r.Context(), id, body.Description)
	if err != nil {
		return err
	}
	return show(w, r, http.StatusCreated, created)
}

func showBrain(w http.ResponseWriter, r *http.Request, b *brain.Brain) error {
	return show(w, r, http.StatusOK, b)
}

func show(w http.ResponseWriter, r *http.Request, status int, b *brain.Brain) error {
	counts, err := b.Counts(r.Context())
	if err != nil {
		return err
	}
	description, err := b.Description()
	if err != nil {
		return err
	}
	return reply(w, status, brainBody{
		BrainID:     b.ID,
		Description: description,
		Documents:   counts.Documents,
		Chunks:      counts.Chunks,
		Vectors:     counts.Vectors,
	})
}

func (a *API) deleteBrain(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("brain")
	if err := a.Store.Check(id); err != nil {
		return err
	}
	if r.Header.Get("X-Confirm-Delete") != "yes" {
		return problem.New(problem.ConfirmationRequired, "deleting a brain requires X-Confirm-Delete: yes")
	}
	if err := a.Store.Delete(r.Context(), id); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
