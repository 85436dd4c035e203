"""The gateway on the network: PostgreSQL's protocol and HTTP in one process."""
