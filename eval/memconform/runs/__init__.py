"""A run of one dataset against one SDK in one scenario, from the plan to the result on disk."""
