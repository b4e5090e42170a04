"""The contract's JSON and base64."""
