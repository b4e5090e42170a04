"""The routes of the contract."""
