"""Load: requests at a rate or from workers, and what a daemon makes of them."""
