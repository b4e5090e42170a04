"""What runs leave on disk: folders, whole files, files that only grow, and where they came from."""
