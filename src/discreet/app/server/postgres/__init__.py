"""PostgreSQL's wire protocol, version 3: what psql, drivers and BI tools speak."""
