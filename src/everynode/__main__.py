"""``python -m everynode`` and the program ``everynode`` are the command line."""

import signal


def main() -> None:
    """Run the command line. Ctrl-C shows no traceback, even during the imports and at the end."""
    is_own = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not under nohup
    if is_own:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from everynode.cli import main as run
    from everynode.cli.interrupt import end

    if is_own:
        signal.signal(signal.SIGINT, end)
    run()


if __name__ == "__main__":
    main()
