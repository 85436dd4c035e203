"""One file per command; each has `add(app)`. Found by looking, not listed."""
