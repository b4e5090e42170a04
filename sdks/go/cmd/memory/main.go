// Command memory is a memory daemon: brains of documents, searched and asked over HTTP.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"memoryd/internal/config"
	"memoryd/internal/daemon"
)

const usage = "usage: memory serve [--addr HOST:PORT] [--root DIR] [--auth-token TOKEN]"

const (
	exitFailed = 1
	exitUsage  = 2
)

// gcPercent is how much garbage may be there, in percent of what is not: by default as much, which was
// 160 MiB beside the index of 105,591 turns.
const gcPercent = 40

func main() {
	debug.SetGCPercent(gcPercent)
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr))
}

// environment is os.LookupEnv: a token set to the empty string is an error, an unset one is not.
type environment func(variable string) (value string, set bool)

func (e environment) get(variable string) string {
	value, _ := e(variable)
	return value
}

func run(ctx context.Context, args []string, env environment, stdout, stderr io.Writer) int {
	options, err := parse(args, env)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(stdout, usage)
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "memory: %v\n", err)
		return exitUsage
	}
	if err := daemon.Run(ctx, options, stdout); err != nil {
		fmt.Fprintf(stderr, "memory: %v\n", err)
		return exitFailed
	}
	return 0
}

func parse(args []string, env environment) (daemon.Options, error) {
	var options daemon.Options
	if len(args) > 0 && (args[0] == "-h" || args[0] == "--help") {
		return options, flag.ErrHelp
	}
	if len(args) == 0 || args[0] != "serve" {
		return options, errors.New(usage)
	}
	flags := flag.NewFlagSet("memory serve", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&options.Address, "addr", "127.0.0.1:18850", "")
	flags.StringVar(&options.Home, "root", env.get("JB_HOME"), "")
	token, tokenSet := env("JB_AUTH_TOKEN")
	flags.Func("auth-token", "", func(value string) error {
		token, tokenSet = value, true
		return nil
	})
	if err := flags.Parse(args[1:]); err != nil {
		return options, err
	}
	if flags.NArg() > 0 {
		// The argument is not repeated: it may be the rest of an unquoted token.
		return options, errors.New("too many arguments; " + usage)
	}
	if err := config.CheckAddress(options.Address); err != nil {
		return options, fmt.Errorf("--addr: %w", err)
	}
	if options.Home == "" {
		return options, errors.New("no state folder: set --root or JB_HOME")
	}
	if tokenSet {
		if err := config.CheckToken(token); err != nil {
			return options, fmt.Errorf("--auth-token or JB_AUTH_TOKEN: %w", err)
		}
		options.Token = token
	}
	var err error
	options.Config, err = config.FromEnv(env.get)
	return options, err
}
