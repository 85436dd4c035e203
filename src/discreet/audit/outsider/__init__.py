"""What anybody can infer from published cells: linear programs over alternative tables."""
