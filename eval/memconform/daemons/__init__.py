"""SDKs and their daemons: manifest, build, start, readiness, resources, stop."""
