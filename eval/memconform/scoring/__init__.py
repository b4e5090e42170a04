"""What an answer is worth, and the verdicts in which that ends."""
