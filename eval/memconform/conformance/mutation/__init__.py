"""How strong the suite is: daemons with one thing broken, and which of them the cases find."""
