"""The async client of the contract: HTTP and SSE, recorded, timed, with typed failures."""
