"""One SDK, one scenario, one dataset: from a plan to a result on disk."""
