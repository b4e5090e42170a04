"""The wire contract as types: requests, responses, stream events. No I/O."""
