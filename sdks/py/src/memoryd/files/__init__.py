"""Documents on disk: reading, listing, and changing them atomically."""
