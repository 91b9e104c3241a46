"""``python -m everynode`` is the command line."""

from everynode.cli import main

if __name__ == "__main__":
    main()
