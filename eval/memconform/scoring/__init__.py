"""What an answer is worth, and the statuses in which a question ends."""
