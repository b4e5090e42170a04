"""Run output on disk: folders, atomic files, append-only journals and provenance."""
