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
	"syscall"

	"memoryd/internal/config"
	"memoryd/internal/daemon"
)

const usage = "usage: memory serve [--addr HOST:PORT] [--root DIR]"

const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

type options struct {
	address, root string
	config        config.Config
}

func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	given, err := parse(args, getenv)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(stdout, usage)
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "memory: %v\n", err)
		return exitUsage
	}
	if err := daemon.Run(ctx, given.address, given.root, given.config, stdout); err != nil {
		fmt.Fprintf(stderr, "memory: %v\n", err)
		return exitFailed
	}
	return 0
}

func parse(args []string, getenv func(string) string) (options, error) {
	if len(args) > 0 && (args[0] == "-h" || args[0] == "--help") {
		return options{}, flag.ErrHelp
	}
	if len(args) == 0 || args[0] != "serve" {
		return options{}, errors.New(usage)
	}
	var given options
	flags := flag.NewFlagSet("memory serve", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&given.address, "addr", "127.0.0.1:18850", "")
	flags.StringVar(&given.root, "root", getenv("JB_HOME"), "")
	if err := flags.Parse(args[1:]); err != nil {
		return given, err
	}
	if flags.NArg() > 0 {
		return given, fmt.Errorf("%q is one argument too many", flags.Arg(0))
	}
	if err := config.CheckAddress(given.address); err != nil {
		return given, fmt.Errorf("--addr: %w", err)
	}
	if given.root == "" {
		return given, errors.New("where is the state folder? give --root or JB_HOME")
	}
	var err error
	given.config, err = config.FromEnv(getenv)
	return given, err
}
