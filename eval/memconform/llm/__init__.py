"""Language models behind one interface: names, vendors' clients, prices, budget, cache, retries."""
