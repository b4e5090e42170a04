"""SDKs and their daemons: manifests, builds, processes, readiness and resources."""
