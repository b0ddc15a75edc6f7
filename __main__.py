"""`python -m opconform`."""

from opconform.cli import main

if __name__ == "__main__":
    main()
