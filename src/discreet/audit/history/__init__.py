"""What a history of exact answers determines: atoms, their equations, and the sets below k."""
