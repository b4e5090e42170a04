// Command driver drives the client for memconform client; sdks/DRIVER.md describes the lines.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log"
	"os"
	"time"

	"memoryd/client"
)

type settings struct {
	BaseURL    string
	Token      string
	IdleMs     int
	DeadlineMs int
	Retries    int
}

type command struct {
	settings
	ID          int
	Call        string
	Brain       string
	Body        json.RawMessage
	CancelAfter int
}

type line map[string]any

func main() {
	output := json.NewEncoder(os.Stdout)
	write := func(fields line) {
		if err := output.Encode(fields); err != nil {
			log.Fatal(err)
		}
	}
	claims := []string{"ask", "search", "ingest", "token", "idle", "deadline", "cancel", "retry"}
	write(line{"driver": "memory-go 1.0", "protocol": 1, "claims": claims})
	clients := map[settings]*client.Client{}
	input := json.NewDecoder(os.Stdin)
	for {
		var command command
		if input.Decode(&command) != nil {
			return
		}
		last := run(clients, command, write)
		last["id"] = command.ID
		write(last)
	}
}

// run makes a call; it returns the last line, without its id.
func run(clients map[settings]*client.Client, command command, write func(line)) line {
	caller, ok := clients[command.settings]
	if !ok {
		var err error
		if caller, err = client.New(command.BaseURL, client.Options{
			Token:    command.Token,
			Idle:     time.Duration(command.IdleMs) * time.Millisecond,
			Deadline: time.Duration(command.DeadlineMs) * time.Millisecond,
			Retries:  cmp.Or(command.Retries, -1),
		}); err != nil {
			return failure(err)
		}
		clients[command.settings] = caller
	}
	call := caller.Search
	switch command.Call {
	case "ask":
		return ask(caller, command, write)
	case "ingest":
		call = caller.Ingest
	}
	body, err := call(context.Background(), command.Brain, command.Body)
	if err != nil {
		return failure(err)
	}
	return line{"ok": body}
}

func ask(caller *client.Client, command command, write func(line)) line {
	count := 0
	for event, err := range caller.Ask(context.Background(), command.Brain, command.Body) {
		if err != nil {
			return failure(err)
		}
		write(line{"id": command.ID, "event": event.Name, "data": event.Data})
		if count++; count == command.CancelAfter {
			return line{"cancelled": true}
		}
	}
	return line{"ok": nil}
}

func failure(err error) line {
	fields := line{"kind": "unknown", "message": err.Error()}
	if failed := (*client.Error)(nil); errors.As(err, &failed) {
		fields["kind"] = failed.Kind
		if failed.Status != 0 {
			fields["status"] = failed.Status
		}
		if failed.Code != "" {
			fields["code"] = failed.Code
		}
	}
	return line{"error": fields}
}
