// Package daemon runs the memory daemon from start to shutdown.
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
	"runtime/debug"
	"sync"
	"time"

	"memoryd/internal/api"
	"memoryd/internal/brain"
	"memoryd/internal/config"
	"memoryd/internal/retrieve"
)

// Version is the daemon's version.
const Version = "0.1.0"

const (
	// grace is how long open requests may take to finish at shutdown, for which the contract
	// allows 5 s in total.
	grace = 2 * time.Second

	// headLimit is the maximum size of a request's line and headers, in bytes, which anybody can send.
	headLimit = 64 << 10

	// pingAfter is well below the 25 s of silence that the contract allows.
	pingAfter = 15 * time.Second
)

// Options are the settings from the command line and the environment.
type Options struct {
	Address string
	Home    string // the state folder
	Token   string // empty if no token is required
	Config  config.Config
}

// Run serves until ctx ends. It writes `listening on …` to announce once it listens.
func Run(ctx context.Context, o Options, announce io.Writer) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	c := o.Config
	p := newProviders(c)
	store, err := brain.NewStore(brain.Home(o.Home), p.embedder)
	if err != nil {
		return fmt.Errorf("preparing the state folder: %w", err)
	}
	listener, err := net.Listen("tcp", o.Address)
	if err != nil {
		// The plain cause, such as `address already in use`, without `listen tcp … bind`.
		var call *os.SyscallError
		if errors.As(err, &call) {
			err = call.Err
		}
		return fmt.Errorf("cannot listen on %s: %w", o.Address, err)
	}
	var warming sync.WaitGroup
	warming.Add(1)
	go func() {
		defer warming.Done()
		// In the background: a request waits for its own brain only.
		store.OpenAll(ctx)
		// What reading the indexes left, 75 of 275 MiB with 105,591 turns, would stay for minutes.
		debug.FreeOSMemory()
	}()
	api := &api.API{
		Version:   Version,
		RunID:     c.RunID,
		Store:     store,
		Retriever: retrieve.Retriever{Embedder: p.embedder, QueryPrefix: c.QueryPrefix, Reranker: p.reranker},
		Reader:    p.reader,
		Token:     o.Token,
		Loopback:  listener.Addr().(*net.TCPAddr).IP.IsLoopback(),
		BodyAfter: c.RequestTimeout,
		Stopping:  ctx.Done(),
		PingAfter: pingAfter,
	}
	slog.Info("starting", "embedder", c.Embed.Name, "reader", c.LLM.Name, "reranker", c.Rerank.Name)
	err = serve(ctx, listener.(*net.TCPListener), api.Handler(), c.RequestTimeout, announce)
	end()
	warming.Wait()
	return errors.Join(err, store.Close())
}

// serve returns after ctx ends and open requests have finished or used up their grace.
func serve(
	ctx context.Context, listener *net.TCPListener, handler http.Handler, headTimeout time.Duration, announce io.Writer,
) error {
	requests, endRequests := context.WithCancel(context.WithoutCancel(ctx))
	defer endRequests()
	server := &http.Server{
		Handler:           markParsed(handler),
		ReadHeaderTimeout: headTimeout,
		MaxHeaderBytes:    headLimit,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ConnContext:       withConnection,
		ConnState:         expectRequest,
		ErrorLog:          slog.NewLogLogger(slog.Default().Handler(), slog.LevelWarn),
		// `OPTIONS *` is an unknown route like any other, and requires the token.
		DisableGeneralOptionsHandler: true,
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(problemListener{listener}) }()
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
