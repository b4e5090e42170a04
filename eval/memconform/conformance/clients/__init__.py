"""Cases that hold an SDK's client to the contract, with a scripted daemon on the other side."""
