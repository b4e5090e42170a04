"""Language models, called with their vendors' clients."""
