"""What a brain is filled with, the proof that its index is whole, and the daemon's monitor."""
