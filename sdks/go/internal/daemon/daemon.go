// Package daemon runs the memory daemon from its start to its end.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"memoryd/internal/brain"
	"memoryd/internal/config"
	"memoryd/internal/httpapi"
)

// Version is the daemon's own.
const Version = "0.1.0"

const (
	// grace is what requests get to finish at the end; the contract gives 5 s to all of it.
	grace = 2 * time.Second

	headerTimeout = 30 * time.Second
)

// ListenError is that there is no listening on an address.
type ListenError struct {
	Address string
	Err     error
}

func (e *ListenError) Error() string {
	reason := e.Err
	// A plain word for people: `address already in use`, without `listen tcp … bind`.
	var call *os.SyscallError
	if errors.As(e.Err, &call) {
		reason = call.Err
	}
	return fmt.Sprintf("cannot listen on %s: %v", e.Address, reason)
}

func (e *ListenError) Unwrap() error { return e.Err }

// Run serves until ctx ends, and tells announce where it listens.
func Run(ctx context.Context, address, home string, c config.Config, announce io.Writer) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	p := newProviders(c)
	store, err := brain.NewStore(brain.Home(home), p.embedder)
	if err != nil {
		return fmt.Errorf("preparing the state folder: %w", err)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return &ListenError{Address: address, Err: err}
	}
	var warming sync.WaitGroup
	warming.Add(1)
	go func() {
		defer warming.Done()
		// Requests wait for the brain that they want, not for all.
		store.Warm(ctx)
	}()
	api := &httpapi.API{
		Version:   Version,
		RunID:     c.RunID,
		Store:     store,
		Retriever: p.retriever(c),
		Reader:    p.reader,
		Streams:   ctx,
	}
	slog.Info("starting", "embedder", c.Embed.Name, "reader", c.LLM.Name, "reranker", c.Rerank.Name)
	err = serve(ctx, listener, api.Handler(), announce)
	end()
	warming.Wait()
	return errors.Join(err, store.Close())
}

// serve ends with ctx, after the requests that were open had their grace.
func serve(ctx context.Context, listener net.Listener, handler http.Handler, announce io.Writer) error {
	requests, endRequests := context.WithCancel(context.WithoutCancel(ctx))
	defer endRequests()
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ErrorLog:          slog.NewLogLogger(slog.Default().Handler(), slog.LevelWarn),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	if _, err := fmt.Fprintf(announce, "listening on http://%s\n", listener.Addr()); err != nil {
		return errors.Join(err, server.Close())
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	slog.Info("stopping")
	deadline, cancel := context.WithTimeout(requests, grace)
	defer cancel()
	if server.Shutdown(deadline) != nil {
		endRequests()
		return server.Close()
	}
	return nil
}
