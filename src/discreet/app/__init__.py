"""Between people and jobs: command line, server, workbench."""
