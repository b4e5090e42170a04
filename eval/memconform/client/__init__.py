"""The async client of the contract."""
