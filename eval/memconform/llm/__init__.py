"""Language models behind one door: names, vendors' clients, prices, budget, cache, retries."""
