"""Types of the wire contract: requests, responses and stream events. No I/O."""
