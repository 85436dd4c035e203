"""What pytest looks at here: the pages people wrote, not what is made from the program."""

collect_ignore = ["conf.py", "reference_pages.py", "_build", "reference/generated"]
