"""The engine of cell suppression: which cells to withhold beside the sensitive ones."""
