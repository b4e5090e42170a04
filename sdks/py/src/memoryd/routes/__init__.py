"""The routes of the contract, a file a profile or less."""
