"""`python -m discreet`."""

from discreet.app.cli.main import main

if __name__ == "__main__":
    main()
