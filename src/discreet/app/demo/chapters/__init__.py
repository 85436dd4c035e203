"""One file per chapter: `TITLE`, `ORDER` and `run(stage)`. Found by looking, not listed."""
