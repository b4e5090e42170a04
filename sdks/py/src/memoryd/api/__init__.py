"""The HTTP API: routes, token, origin, parameters, bodies, responses, streams."""
