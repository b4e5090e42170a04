"""Questions with what a right answer holds: the model, its loader, shipped sets, selection."""
